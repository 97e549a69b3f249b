"""A small honest campaign, written down by hand, for tests to falsify one thing at a time.

`run-0` on worker A: its second step is in flight when A is killed at t=2; B takes over at t=4.
`run-1` on worker C: its second step is in flight when C is paused at t=10; B takes over at t=12,
C wakes at t=13. `run-2` is cancelled while it runs. `twin-0` saw no fault.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from comparison.crowd.notes import Notes
from comparison.evidence import (
    Cancellation,
    Case,
    Clock,
    End,
    Evidence,
    FaultRecord,
    Ownership,
    Start,
    Write,
)
from comparison.ledger import Begin, CallKind, Identity, Index, Ledger
from comparison.ledger import End as CallEnd
from two_workers import RunState, StepRecord

S = 1_000_000_000
REPORT = {"answer": "the pool ran dry"}


class Recorder:
    """What went on, as lists that a test may change; `case()` makes it evidence."""

    def __init__(self) -> None:
        self.records: list[Any] = []
        self.starts: list[Start] = []
        self.ends: dict[str, End] = {}
        self.writes: list[Write] = []
        self.ownerships: list[Ownership] = []
        self.faults: list[FaultRecord] = []
        self.cancellations: list[Cancellation] = []
        self.healed_ns = 0
        self.converged_ns: int | None = 24 * S

    def step(self, run: str, place: str, fence: int, worker: str, *, at: float) -> None:
        """A call that is answered after 0.1 s and recorded after 0.15 s."""
        self.call(run, place, fence, worker, at=at, ends=at + 0.1)
        self.write(run, place, fence, worker, at=at + 0.15)

    def call(
        self,
        run: str,
        place: str,
        fence: int,
        worker: str,
        *,
        at: float,
        ends: float,
        delivered: bool = True,
        outcome: Any = "answered",
        kind: CallKind = "model",
        body: str | None = None,
    ) -> None:
        """One call. Equal places get equal bodies unless `body` says otherwise."""
        number = 1 + len(self.records) // 2
        who = Identity(
            run=run, key=f"{run}/{place}", fence=(fence,), attempt=1, worker=worker, engine="test"
        )
        begin = Begin(
            seq=0,
            t_ns=int(at * S),
            call=number,
            kind=kind,
            name=kind,
            input_hash=body or place,
            identity=who,
        )
        over = CallEnd(
            seq=0,
            t_ns=int(ends * S),
            call=number,
            outcome=outcome,
            delivered=delivered,
            tokens_in=100,
            tokens_out=10,
            micro_usd=1000,
        )
        self.records += [begin, over]

    def write(self, run: str, place: str, fence: int, worker: str, *, at: float) -> None:
        self.writes.append(
            Write(key=f"{run}/{place}", fence=(fence,), worker=worker, t_ns=int(at * S))
        )

    def claim(self, run: str, fence: int, worker: str, *, at: float) -> None:
        self.ownerships.append(
            Ownership(
                what=run, fence=(fence,), worker=worker, since_ns=int(at * S), cause="claimed"
            )
        )

    def case(self, arm: str = "hand_rolled", *, crowd: Notes | None = None) -> Case:
        """What the checks are given."""
        evidence = Evidence(
            arm=arm,
            engine=arm.partition("+")[0],
            settings={},
            clock=Clock(offset_ns=0),
            starts=tuple(self.starts),
            ends=tuple(self.ends.values()),
            faults=tuple(self.faults),
            cancellations=tuple(self.cancellations),
            ownerships=tuple(self.ownerships),
            writes=tuple(self.writes),
            refused_writes=(),
            healed_ns=self.healed_ns,
            converged_ns=self.converged_ns,
            convergence_bound=40.0,
            crowd=crowd,
        )
        ordered = sorted(self.records, key=lambda record: record.t_ns)
        numbered = [_with_seq(record, seq) for seq, record in enumerate(ordered, 1)]
        return Case(evidence=evidence, calls=Index(Ledger.of(numbered)))


class Planted(Recorder):
    """The campaign."""

    def __init__(self) -> None:
        super().__init__()
        self.starts = [Start(run="twin-0", question=0, t_ns=0, twin=True)]
        self.starts += [
            Start(run=f"run-{n}", question=0, t_ns=n * 10 * S, twin=False) for n in range(3)
        ]
        self.faults = [
            fault(1, "kill", "A", "run-0/1.0", at=2.0),
            fault(2, "pause", "C", "run-1/1.0", at=10.0, resumed=13.0),
        ]
        self.cancellations = [
            Cancellation(
                run="run-2",
                case="running",
                state_before=RunState.RUNNING,
                requested_ns=22 * S,
                acknowledged_ns=int(22.01 * S),
                ended_ns=int(22.1 * S),
                state_after=RunState.CANCELLED,
            )
        ]
        self.ends = {
            "twin-0": end("twin-0", workers="AA"),
            "run-0": end("run-0", workers="AB"),
            "run-1": end("run-1", workers="CB"),
            "run-2": end("run-2", state=RunState.CANCELLED, workers="B"),
        }
        self.healed_ns, self.converged_ns = 23 * S, 24 * S
        self._play()

    def _play(self) -> None:
        for step in ("0.0", "1.0"):
            self.step("twin-0", step, 1, "A", at=0.1 if step == "0.0" else 0.3)
        self.claim("run-0", 1, "A", at=0.9)
        self.step("run-0", "0.0", 1, "A", at=1.0)
        self.call("run-0", "1.0", 1, "A", at=1.9, ends=2.1, delivered=False)
        self.claim("run-0", 2, "B", at=3.9)
        self.step("run-0", "1.0", 2, "B", at=4.0)
        self.claim("run-1", 1, "C", at=8.9)
        self.step("run-1", "0.0", 1, "C", at=9.0)
        self.call("run-1", "1.0", 1, "C", at=9.9, ends=10.1)
        self.claim("run-1", 2, "B", at=11.9)
        self.step("run-1", "1.0", 2, "B", at=12.0)
        self.claim("run-2", 1, "B", at=20.9)
        self.step("run-2", "0.0", 1, "B", at=21.0)
        self.call("run-2", "1.0", 1, "B", at=21.9, ends=22.05, delivered=False)


def fault(
    number: int, kind: Any, victim: str, key: str, *, at: float, resumed: float | None = None
) -> FaultRecord:
    """A fault that landed on one call in flight."""
    return FaultRecord(
        number=number,
        kind=kind,
        point="begin",
        phase=0.5,
        victim=victim,
        held_key=key,
        before_ns=int(at * S),
        after_ns=int((at + 0.005) * S),
        resumed_ns=None if resumed is None else int(resumed * S),
        in_flight=(key,),
        landed=True,
    )


def end(run: str, *, state: RunState = RunState.SUCCEEDED, workers: str = "AB") -> End:
    """An end with one recorded step for each of `workers`, who recorded it."""
    result = REPORT if state is RunState.SUCCEEDED else None
    recorded = tuple(
        StepRecord(
            key=f"{run}/{n}.0",
            kind="ask_model",
            outcome="succeeded",
            attempt=1,
            worker=worker,
            recorded_at=datetime(2026, 1, 1, tzinfo=UTC),
        )
        for n, worker in enumerate(workers)
    )
    return End(
        run=run,
        state=state,
        t_ns=5 * S,
        result=result,
        failure=None,
        steps=recorded,
        state_again=state,
        result_again=result,
    )


def _with_seq(record: Any, seq: int) -> Any:
    fields = {name: getattr(record, name) for name in record.__dataclass_fields__}
    return type(record)(**{**fields, "seq": seq})
