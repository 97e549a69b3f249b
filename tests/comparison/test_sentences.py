"""What the report says in words: what differs, and what is not shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from comparison.report import ArmResult, rows
from comparison.results import judged
from comparison.sentences import differences, not_shown

from .planted import Planted, S, fault


@pytest.fixture
def results() -> list[ArmResult]:
    slow = Planted()
    slow.writes = [write for write in slow.writes if write.key != "run-1/1.0"]
    cases = [Planted().case("hand_rolled"), slow.case("temporal+tuned")]
    return [judged([case]) for case in cases]


def test_a_difference_says_what_the_settings_alone_predict(results: list[ArmResult]) -> None:
    said = differences(results)
    assert "hand_rolled 2.00 s and temporal+tuned 2.00 s in the median; one fault" in said[0]
    assert "The settings alone predict 0.95 s in favour of hand_rolled." in said[0]


def test_faults_too_few_for_a_test_are_said_to_be(results: list[ArmResult]) -> None:
    [said] = [line for line in differences(results) if line.startswith("Recovery")]
    assert "(log-rank, 1 and 1 faults): n too small (< 4)." in said


def test_a_line_does_not_deny_the_difference_that_its_test_shows() -> None:
    late = Planted()
    late.records = late.records[:8]  # up to the call that A's death aborted
    late.call("run-0", "1.0", 2, "B", at=11.0, ends=11.1)
    half = [Planted().case("temporal+tuned"), late.case("temporal+tuned")]
    blocks = [[Planted().case("hand_rolled")] * 12, half * 6]
    met_the_same = [replace(judged(block), cpu_pressure=0.5) for block in blocks]
    said = differences(met_the_same)[0]
    assert "the intervals of the medians overlap" in said
    assert ", a difference is shown." in said
    assert "no difference shown" not in said


def test_blocks_are_compared_in_pairs() -> None:
    slow = Planted()
    slow.ends["run-1"] = slow.ends["run-1"].model_copy(update={"t_ns": 19 * S})
    blocks = [[Planted().case("hand_rolled")] * 6, [slow.case("temporal+tuned")] * 6]
    results = [replace(judged(block), cpu_pressure=0.5) for block in blocks]
    [said] = [line for line in differences(results) if line.startswith("Run time lost")]
    assert "paired over 6 blocks: longer on hand_rolled in 0, on temporal+tuned in 6" in said
    assert said.endswith("sign test p = 0.031.")
    labels = [row.label.strip() for row in rows(results)]
    assert [f"block {n}" in labels for n in range(1, 8)] == [True] * 6 + [False]


def test_what_was_not_brought_is_said_and_what_was_is_not(results: list[ArmResult]) -> None:
    first = not_shown(results)[0]
    assert "restart (the server crashes under everybody" in first
    assert "kill (" not in first


def test_a_run_that_changed_hands_though_it_need_not_have_is_timed_too() -> None:
    planted = Planted()
    planted.faults[0] = fault(1, "stall", "A", "run-0/1.0", at=2.0, resumed=6.0)
    results = [judged([planted.case(arm)]) for arm in ("hand_rolled", "temporal+tuned")]
    table = [row for row in rows(results) if row.section.startswith("Faults after which")]
    assert [(row.label.strip(), row.cells[0]) for row in table[:4]] == [
        ("stall: runs taken over, of those hit", "1 of 1"),
        ("next call of the step, where taken over: median [95 % CI]", "2.00 s [one fault]"),
        ("longest of these", "2.00 s"),
        ("runs, of faults", "1 of 1"),
    ]
    [said] = [line for line in differences(results) if "stall" in line]
    assert "1 of 1 on hand_rolled and 1 of 1 on temporal+tuned; run by run of these" in said
