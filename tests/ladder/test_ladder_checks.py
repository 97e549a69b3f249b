"""The ladder's own checks on planted evidence: when they pass, convict, or cannot know."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from comparison.evidence import Case, Clock, End, Evidence, FaultRecord, Ownership, Start
from comparison.ladder.checks import BOUNDED, CAP, ONE_OWNER, ORPHAN
from comparison.ladder.settings import BOUND
from comparison.ladder.trial import Trial, bill
from comparison.ledger import Begin, Identity, Index, Ledger, Record
from comparison.ledger import End as Ended
from comparison.story.camera import Note
from comparison.verdicts import Outcome
from two_workers import RunState

S = 1_000_000_000
T0 = datetime(2026, 1, 1, tzinfo=UTC)


class Scene:
    """Evidence, told call by call. Times are seconds."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.notes: list[Note] = []
        self.faults: list[FaultRecord] = []
        self.starts: list[Start] = []
        self.ends: list[End] = []
        self.settings: dict[str, str] = {}
        self.contended = 0

    def call(
        self, key: str, worker: str, at: float, fence: int = 1, *, refused: bool = False
    ) -> None:
        number = len(self.records) // 2 + 1
        who = Identity(
            run=key.partition("/")[0], key=key, fence=(fence,), attempt=1, worker=worker, engine="x"
        )
        self.records += [
            Begin(
                seq=2 * number - 1, t_ns=int(at * S), call=number, kind="model", name="chat",
                input_hash="same", identity=who,
            ),
            Ended(
                seq=2 * number, t_ns=int((at + 0.1) * S), call=number,
                outcome="refused" if refused else "answered", delivered=True,
                tokens_in=0 if refused else 90, tokens_out=0 if refused else 10,
                micro_usd=0 if refused else 500,
            ),
        ]  # fmt: skip

    def claim(self, run: str, worker: str, at: float, left: float | None = None) -> None:
        moment = T0 + timedelta(seconds=at)
        self.notes.append(Note(moment, "claim", run, "claim", worker, len(self.notes) + 1, left))

    def kill(self, worker: str, key: str, at: float, *, landed: bool = True) -> None:
        self.faults.append(
            FaultRecord(
                number=1, kind="kill", point="reply", phase=0, victim=worker, held_key=key,
                before_ns=int(at * S), after_ns=int(at * S), in_flight=(key,), landed=landed,
                problem=None if landed else "it was not at work",
            )
        )  # fmt: skip

    def run(self, name: str, start: float, end: float) -> None:
        self.starts.append(Start(run=name, question=0, t_ns=int(start * S), twin=False))
        self.ends.append(
            End(
                run=name, state=RunState.SUCCEEDED, t_ns=int(end * S), result=1, failure=None,
                steps=(), state_again=RunState.SUCCEEDED, result_again=1,
            )
        )  # fmt: skip

    def trial(self) -> Trial:
        clock = Clock(offset_ns=round(T0.timestamp() * 1e9))
        claims = [
            Ownership(
                what=note.run_id, fence=(note.generation,), worker=note.writer,
                since_ns=clock.mono(note.at), cause="claimed",
            )
            for note in self.notes
        ]  # fmt: skip
        evidence = Evidence(
            arm="story", engine="x", settings=self.settings, clock=clock,
            starts=tuple(self.starts), ends=tuple(self.ends), faults=tuple(self.faults),
            cancellations=(), ownerships=tuple(claims), writes=(), refused_writes=(),
            healed_ns=0, converged_ns=0, convergence_bound=BOUND,
        )  # fmt: skip
        case = Case(evidence=evidence, calls=Index(Ledger.of(self.records)))
        return Trial(case, tuple(self.notes), self.contended)


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_no_race_no_verdict(scene: Scene) -> None:
    scene.claim("a", "w1", 0)
    assert ONE_OWNER(scene.trial()).outcome is Outcome.UNKNOWN


def test_two_runs_for_two_workers_pass(scene: Scene) -> None:
    scene.contended = 1
    for run, worker in (("a", "w1"), ("b", "w2")):
        scene.claim(run, worker, 0)
        scene.call(f"{run}/0.0", worker, 1)
    assert ONE_OWNER(scene.trial()).outcome is Outcome.PASS


def test_a_claim_over_a_living_lease_convicts(scene: Scene) -> None:
    scene.contended = 1
    scene.claim("a", "w1", 0)
    scene.claim("a", "w2", 0.1, left=1.9)
    verdict = ONE_OWNER(scene.trial())
    assert verdict.outcome is Outcome.FAIL
    assert "w2 claimed a while its owner's lease had 1.9 s left" in verdict.detail


def test_a_claim_over_an_expired_lease_is_a_reclaim(scene: Scene) -> None:
    scene.contended = 1
    scene.claim("a", "w1", 0)
    scene.claim("a", "w2", 5, left=-3.0)
    assert ONE_OWNER(scene.trial()).outcome is Outcome.PASS


def test_a_wrong_ledger_convicts_without_any_claim(scene: Scene) -> None:
    scene.contended = 1
    scene.call("a/0.0", "w1", 0)
    scene.call("a/0.0", "w2", 0)
    assert ONE_OWNER(scene.trial()).outcome is Outcome.FAIL


def test_a_worker_that_was_struck_may_be_followed_by_another(scene: Scene) -> None:
    scene.contended = 1
    scene.call("a/0.0", "w1", 0)
    scene.kill("w1", "a/0.0", 0.05)
    scene.call("a/0.0", "w2", 3)
    assert ONE_OWNER(scene.trial()).outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("takeover", "outcome"), [(2, Outcome.PASS), (BOUND + 1, Outcome.FAIL), (None, Outcome.FAIL)]
)
def test_an_orphan_must_be_called_for_in_time(
    scene: Scene, takeover: float | None, outcome: Outcome
) -> None:
    scene.call("a/0.0", "w1", 0)
    scene.kill("w1", "a/0.0", 0.05)
    if takeover is not None:
        scene.call("a/0.0", "w2", 0.05 + takeover)
    assert ORPHAN(scene.trial()).outcome is outcome


def test_a_fault_that_did_not_land_proves_nothing(scene: Scene) -> None:
    scene.kill("w1", "a/0.0", 0, landed=False)
    assert ORPHAN(scene.trial()).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(("second", "outcome"), [(0.5, Outcome.FAIL), (1.5, Outcome.PASS)])
def test_one_slot_is_for_one_run_at_a_time(scene: Scene, second: float, outcome: Outcome) -> None:
    scene.settings["max_active"] = "1"
    scene.contended = 1
    scene.run("a", 0, 1)
    scene.run("b", 0, 3)
    scene.claim("a", "w1", 0)
    scene.claim("b", "w2", second)
    assert CAP(scene.trial()).outcome is outcome


@pytest.mark.parametrize(("growth", "outcome"), [(0.0, Outcome.PASS), (1.0, Outcome.FAIL)])
def test_a_queue_may_be_long_but_not_grow(scene: Scene, growth: float, outcome: Outcome) -> None:
    scene.settings |= {"max_waiting": "2", "workers": "2"}
    for n in range(20):
        claimed = n + 1 + growth * n
        scene.run(f"r{n}", n, claimed + 1)
        scene.claim(f"r{n}", "w1", claimed)
    assert BOUNDED(scene.trial()).outcome is outcome


def test_the_bill_counts_what_was_carried_out_again(scene: Scene) -> None:
    scene.call("a/0.0", "w1", 0)
    scene.call("a/0.0", "w2", 1)
    scene.call("a/0.0", "w1", 2, refused=True)
    scene.call("a/1.0", "w2", 3)
    found = bill(scene.trial())
    assert (found.calls, found.tokens, found.micro_usd) == (1, 100, 500)
    assert found.micro_usd_in_all == 1500
