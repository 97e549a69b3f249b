"""Records that a silence withheld: what counts as a former owner's, and what convicts an engine."""

from __future__ import annotations

import gzip
from typing import Any

import pytest

from comparison.arms import find_arm
from comparison.breakers.once import bring_once
from comparison.checks import judge
from comparison.engines import recorded_by
from comparison.evidence import Case, Evidence, LateRecord, RefusedWrite
from comparison.measures import measure
from comparison.report import rows
from comparison.results import judged
from comparison.sentences import not_shown
from comparison.verdicts import Outcome
from comparison.wire import Request

from .planted import Planted, S


def late(what: str = "run-1", at: float = 13.0, outcome: Any = "refused") -> LateRecord:
    """A record of C, from which B has taken `run-1` at t=11.9 and called its step at t=12."""
    return LateRecord(worker="C", what=what, passed_ns=int(at * S), outcome=outcome)


def silenced(*records: LateRecord, **changes: Any) -> Case:
    """The planted campaign with C silenced instead of paused, and what was withheld of it."""
    planted = Planted()
    planted.faults[1] = planted.faults[1].model_copy(
        update={"kind": "silence", "late_bytes": 6033, "resumed_ns": 13 * S}
    )
    case = planted.case()
    evidence = case.evidence.model_copy(update={"late_records": records, **changes})
    return Case(evidence=evidence, calls=case.calls)


def fence(case: Case) -> tuple[Outcome, int]:
    [verdict] = [v for v in judge(case) if v.invariant == "INV-FENCE"]
    return verdict.outcome, verdict.times


def test_a_worker_that_sends_only_heartbeats_has_tried_nothing() -> None:
    found = measure(silenced()).zombies
    assert (found.late_records, found.writes_tried, found.writes_accepted) == (0, 0, 0)


def test_an_engine_that_accepts_a_late_record_is_convicted() -> None:
    case = silenced(late(outcome="accepted"))
    assert fence(case)[0] is Outcome.FAIL
    found = measure(case).zombies
    assert (found.writes_tried, found.writes_accepted) == (1, 1)


def test_what_the_engine_has_on_record_too_is_one_write() -> None:
    planted = Planted()
    planted.write("run-1", "1.0", 1, "C", at=13.1)
    evidence = planted.case().evidence.model_copy(
        update={"late_records": (late(outcome="accepted"),)}
    )
    found = measure(Case(evidence=evidence, calls=planted.case().calls)).zombies
    assert (found.writes_tried, found.writes_accepted) == (1, 1)


@pytest.mark.parametrize("what", ["run-1", "run-1/1.0"], ids=["by run", "by step"])
def test_a_refused_late_record_puts_the_fence_to_the_test(what: str) -> None:
    case = silenced(late(what))
    assert measure(case).zombies.writes_tried == 1
    assert fence(case) == (Outcome.PASS, fence(silenced())[1] + 1)
    label = "zombies: writes accepted, of those tried"
    [row] = [row for row in rows([judged([case])]) if row.label == label]
    assert row.cells == ("0 of 1 (≤ 95.0 %)",)


@pytest.mark.parametrize(
    "record",
    [
        late(at=11.0),
        late(outcome=None),
        late(outcome="failed"),
        late("run-1/0.0"),
        late("run-7"),
    ],
    ids=[
        *("before the takeover", "no answer", "an error", "a step that is still its own"),
        "a run that is still its own",
    ],
)
def test_what_may_not_have_come_or_came_from_its_owner_is_no_try(record: LateRecord) -> None:
    assert measure(silenced(record)).zombies.writes_tried == 0


def test_a_refusal_that_the_worker_was_told_of_is_counted_once() -> None:
    told = RefusedWrite(worker="C", t_ns=13 * S + S // 10, line="not found on completion")
    once = silenced(late(), refused_writes=(told,))
    assert measure(once).zombies.writes_tried == 1
    assert fence(once)[1] == fence(silenced())[1] + 1
    another = told.model_copy(update={"t_ns": 20 * S})
    assert measure(silenced(late(), refused_writes=(told, another))).zombies.writes_tried == 2


def test_evidence_that_knows_of_bytes_alone_says_so() -> None:
    earlier = silenced()
    evidence = earlier.evidence.model_copy(update={"late_records": None})
    result = judged([Case(evidence=evidence, calls=earlier.calls)])
    assert any("heartbeats alone" in line for line in not_shown([result]))
    assert not any("heartbeats alone" in line for line in not_shown([judged([earlier])]))


def test_a_group_commit_is_a_record_of_each_of_its_runs() -> None:
    runs = b'[{"run_id":"0a1b2c.run-001"},{"run_id":"0a1b2c.run-002"}]'
    flush = Request(b"INSERT INTO journal", bytearray(runs), "accepted")
    flush.rows += b"\x00\x01\x00\x00\x00\x0e0a1b2c.run-002"
    assert recorded_by("hand_rolled", flush) == {
        "0a1b2c.run-001": "refused",
        "0a1b2c.run-002": "accepted",
    }
    flush.outcome = "refused"
    assert set(recorded_by("hand_rolled", flush).values()) == {"refused"}


@pytest.mark.parametrize("compressed", [False, True])
def test_a_step_is_known_by_its_tasks_token(compressed: bool) -> None:
    token = b"\x0a\x40\x12\x0e0a1b2c.run-001\x1a\x24\x32\x1a12.3:ask_model:9fc9"
    sent = gzip.compress(token) if compressed else token
    body = bytearray([compressed, *len(sent).to_bytes(4), *sent])
    completed = Request(b"/RespondActivityTaskCompleted", body, "refused")
    assert recorded_by("temporal", completed) == {"0a1b2c.run-001/12.3": "refused"}
    assert recorded_by("temporal", Request(b"/X", bytearray(b"\0\0\0\0\0nothing"))) == {}


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_the_storys_table_accepts_what_comes_late_and_is_convicted(tmp_path: Any) -> None:
    case = await bring_once(find_arm("story"), "silence", tmp_path, point="reply")
    assert _outcomes(case.evidence) >= {"accepted"}
    assert fence(case)[0] is Outcome.FAIL
    assert measure(case).zombies.late_records > 0


def _outcomes(evidence: Evidence) -> set[str | None]:
    assert evidence.late_records is not None
    return {record.outcome for record in evidence.late_records}
