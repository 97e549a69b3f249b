"""The mapping says nothing that is not there: references, evidence, the lesson's sentences."""

from __future__ import annotations

from pathlib import Path

import pytest

from comparison.break_one import GUARDS, Guard, difference, find_guard
from comparison.ladder.rungs import RUNGS
from comparison.mapping.concept import Concept, concepts, find_concept
from comparison.mapping.record import convicts
from comparison.mapping.recording import stored
from comparison.mapping.references import resolve
from comparison.mapping.scenarios import SCENARIOS
from comparison.mapping.timeline import lines
from tests.study.lesson import Sentence, follow, sentences
from two_workers import BadInput, protocol

EVERY = pytest.mark.parametrize("concept", concepts(), ids=lambda concept: concept.id)
WANTED = """
ready claim owner lease expiry heartbeat progress orphan reclaim fence stale-write checkpoint
idempotency atomic-start cancel boundary active-runs tenant-runs model-calls run-cost fairness
overload retry poison stop signal deploy
"""


def test_every_concept_of_the_lesson_has_a_row() -> None:
    assert sorted(concept.id for concept in concepts()) == sorted(WANTED.split())


@EVERY
def test_references_lead_to_the_code(concept: Concept) -> None:
    by_hand, temporal = resolve(concept.by_hand.reference), resolve(concept.temporal.reference)
    assert by_hand.path.startswith(("hand_rolled/", "two_workers/"))
    assert temporal.path.startswith("temporal_version/")
    name = concept.by_hand.reference.rpartition(":")[2].rpartition(".")[2]
    assert name in by_hand.source


@pytest.mark.parametrize(
    ("reference", "missing"),
    [
        ("hand_rolled.claim:NO_SUCH_STATEMENT", "defines no 'NO_SUCH_STATEMENT'"),
        ("hand_rolled.no_such_module:CLAIM", "no module"),
        ("temporal_version.workflow:AgentRun.no_such_method", "defines no"),
    ],
)
def test_a_reference_that_points_nowhere_fails(reference: str, missing: str) -> None:
    with pytest.raises(BadInput, match=missing):
        resolve(reference)


def test_a_reference_is_looked_up_in_the_source() -> None:
    place = resolve("two_workers.protocol:Engine.cancel")
    source = Path(protocol.__file__).read_text().splitlines()
    assert source[place.line - 1].strip().startswith("async def cancel")


@EVERY
def test_every_row_has_evidence_from_both_engines(concept: Concept) -> None:
    assert concept.evidence.scenario in SCENARIOS
    recording = stored(concept.evidence.scenario)
    assert recording is not None, "run `make evidence`"
    assert recording.versions.keys() >= {"PostgreSQL", "Temporal server", "temporalio", "python"}
    assert [side.engine for side in recording.sides] == ["hand_rolled", "temporal"]
    for side in recording.sides:
        assert side.settings, side.engine
        assert side.facts, side.engine
        assert side.checks, side.engine
        assert not side.failed, side.engine
        shown = {line.place for line in lines(side, concept)}
        assert {"harness", "engine"} <= shown, f"nothing of {side.engine} to see"


@pytest.mark.parametrize("guard", GUARDS.values(), ids=lambda guard: guard.name)
def test_every_guard_is_in_the_code_and_was_convicted(guard: Guard) -> None:
    assert difference(guard).count("\n-"), "nothing is removed"
    recording = stored(f"broken-{guard.name}")
    assert recording is not None, "run `make evidence`"
    assert recording.scenario == guard.scenario
    assert convicts(recording, guard)


@EVERY
def test_a_rows_guard_breaks_the_rows_own_scenario(concept: Concept) -> None:
    if concept.broken.guard is None:
        return
    guard = find_guard(concept.broken.guard)
    invariants = {i for c in concepts() if c.broken.guard == guard.name for i in c.invariants}
    assert guard.invariant in invariants


def test_mapping_and_ladder_name_each_other() -> None:
    on_rows = {number for concept in concepts() for number in concept.rungs}
    assert on_rows == {rung.number for rung in RUNGS}


@pytest.mark.parametrize("sentence", sentences(), ids=lambda sentence: sentence.text[:40])
def test_every_sentence_of_the_lesson_is_covered(sentence: Sentence) -> None:
    for name in sentence.by:
        follow(name)


def test_an_unknown_concept_is_bad_input() -> None:
    with pytest.raises(BadInput, match=r"known: ready, claim"):
        find_concept("clam")
