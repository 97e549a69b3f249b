"""What one trial of a rung leaves behind, in the shape that the comparison's checks read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from comparison.dumps import HAND_ROLLED_REFUSAL, refusals
from comparison.evidence import Cancellation, Case, Clock, End, Evidence, Start
from comparison.ladder.settings import BOUND
from comparison.ladder.stage import Stage
from comparison.ledger import Call, Index, Ledger
from comparison.story import camera
from two_workers import RunState, StepRecord


@dataclass(frozen=True)
class Trial:
    """The evidence with its ledger, the camera's notes, and how often a race was arranged."""

    case: Case
    notes: tuple[camera.Note, ...]
    contended: int


@dataclass(frozen=True)
class Bill:
    """Calls that were carried out and paid more than once, and everything that was paid."""

    calls: int
    tokens: int
    micro_usd: int
    micro_usd_in_all: int


async def collect(stage: Stage, clock: Clock, logs: Path) -> Trial:
    """The trial that was just carried out on `stage`."""
    await stage.world.catch_up()
    ends = await _ends(stage, clock)
    states = {end.run: end for end in ends}
    notes = await camera.read_notes(stage.connection)
    refused = [r for r in refusals(logs, HAND_ROLLED_REFUSAL) if r.worker in stage.crew]
    evidence = Evidence(
        arm="story",  # whose timings these are
        engine=stage.schema,
        settings=stage.settings,
        clock=clock.checked(),
        starts=tuple(await _starts(stage, clock)),
        ends=tuple(ends),
        faults=tuple(stage.faults),
        cancellations=tuple(_ended(c, states[c.run]) for c in stage.cancellations),
        ownerships=camera.ownerships(notes, clock),
        writes=camera.writes(notes, clock),
        refused_writes=tuple(refused),
        healed_ns=stage.healed_ns,
        converged_ns=stage.converged_ns,
        convergence_bound=BOUND,
    )
    calls = {n: c for n, c in stage.world.ledger.calls.items() if c.who.engine == stage.schema}
    case = Case(evidence=evidence, calls=Index(Ledger(records=_records(calls), calls=calls)))
    return Trial(case, tuple(notes), stage.contended)


def bill(trial: Trial) -> Bill:
    """What the world was paid for the same step again. Refused calls cost nothing."""
    again: list[Call] = []
    for calls in trial.case.calls.by_key.values():
        again += [call for call in calls if call.executed][1:]
    in_all = trial.case.calls.ledger.calls.values()
    return Bill(
        calls=len(again),
        tokens=sum(c.end.tokens_in + c.end.tokens_out for c in again if c.end),
        micro_usd=sum(c.end.micro_usd for c in again if c.end),
        micro_usd_in_all=sum(c.end.micro_usd for c in in_all if c.end),
    )


def _records(calls: dict[int, Call]) -> list[Any]:
    records = [part for call in calls.values() for part in (call.begin, call.end) if part]
    return sorted(records, key=lambda record: record.seq)


async def _starts(stage: Stage, clock: Clock) -> list[Start]:
    rows = await stage.say("SELECT run_id, created_at FROM runs ORDER BY created_at")
    return [
        Start(
            run=row["run_id"],
            question=0,
            t_ns=clock.mono(row["created_at"]),
            twin=False,
        )
        for row in rows
    ]


async def _ends(stage: Stage, clock: Clock) -> list[End]:
    journal = await stage.say("SELECT * FROM journal ORDER BY key")
    now = await stage.say("SELECT run_id, coalesce(closed_at, now()) AS at, * FROM runs")
    return [
        End(
            run=row["run_id"],
            state=RunState(row["status"]),
            t_ns=clock.mono(row["at"]),
            result=row["result"],
            failure=row["failure"],
            steps=tuple(
                StepRecord(
                    key=step["key"],
                    kind=step["kind"],
                    outcome=step["outcome"]["outcome"],
                    attempt=step["attempt"],
                    worker=step["worker"],
                    recorded_at=step["recorded_at"],
                )
                for step in journal
                if step["run_id"] == row["run_id"]
            ),
            state_again=RunState(row["status"]),
            result_again=row["result"],
        )
        for row in now
    ]


def _ended(cancellation: Cancellation, end: End) -> Cancellation:
    ended = end.t_ns if end.state.is_final else None
    return cancellation.model_copy(update={"ended_ns": ended, "state_after": end.state})
