"""The same seed plans the same experiment, and one purpose does not disturb another."""

from __future__ import annotations

from typing import Any

from comparison.kinds import KINDS, POINTS
from comparison.plan import IMPORTANT, Plan, arm_order, blocks, grid, make_plan, spread
from comparison.questions import QUESTIONS

USUAL: dict[str, Any] = {
    "seed": 7,
    "workers": 3,
    "investigations": 12,
    "cells": spread({"kill": 8, "pause": 4, "silence": 2}),
    "cancellations": 3,
    "questions": QUESTIONS,
}


def planned(**changes: Any) -> Plan:
    return make_plan(**{**USUAL, **changes})


def test_a_seed_repeats_the_experiment_and_another_does_not() -> None:
    assert planned() == planned()
    assert planned().faults != planned(seed=8).faults


def test_all_that_was_asked_for_is_planned_once() -> None:
    kinds = sorted(fault.kind for fault in planned().faults)
    assert kinds == ["kill"] * 8 + ["pause"] * 4 + ["silence"] * 2
    assert [fault.number for fault in planned().faults] == list(range(1, 15))
    assert len(set(planned().questions)) == 12


def test_more_faults_do_not_change_the_questions_or_the_phases_of_the_first_ones() -> None:
    usual, more = planned(), planned(cells=spread({"kill": 20, "pause": 4}))
    assert more.questions == usual.questions
    assert [f.phase for f in more.faults[:14]] == [f.phase for f in usual.faults]


def test_phases_fall_evenly_over_the_renewal_gap() -> None:
    phases = sorted(fault.phase for fault in planned(cells=spread({"kill": 400})).faults)
    assert max(abs(phase - i / len(phases)) for i, phase in enumerate(phases)) < 0.1


def test_a_silence_comes_when_there_is_something_to_record() -> None:
    assert {point for _, point in spread({"silence": 30})} == {"reply", "finish"}


def test_a_few_kills_are_spread_over_the_points_at_which_the_victim_calls() -> None:
    assert [point for _, point in spread({"kill": 6})] == [
        *("begin", "during", "reply", "heartbeat", "finish"),
        "begin",
    ]


def test_every_kind_is_planned_at_every_point_of_its_own() -> None:
    cells = grid(60)
    assert {kind for kind, _ in cells} == set(KINDS)
    assert {point for kind, point in cells if kind == "kill"} == set(POINTS)
    for kind, rule in KINDS.items():
        assert {point for other, point in cells if other == kind} == set(rule.points)


def test_each_cell_gets_what_a_p95_needs_unless_fewer_are_asked_for() -> None:
    cells = grid(60)
    assert all(cells.count(cell) == 60 for cell in set(cells))
    fewer = grid(60, others=6)
    assert set(fewer) == set(cells)
    assert all(fewer.count(cell) == (60 if cell in IMPORTANT else 6) for cell in set(fewer))


def test_the_blocks_share_out_the_cells() -> None:
    cells = grid(60)
    dealt = blocks(cells, 7, seed=1)
    assert sorted(cell for block in dealt for cell in block) == sorted(cells)
    sizes = [len(block) for block in dealt]
    assert max(sizes) - min(sizes) <= 1
    assert all({"kill", "pause", "silence"} <= {kind for kind, _ in block} for block in dealt)


def test_without_what_cannot_be_brought_everything_else_stays() -> None:
    plan = planned().without({"silence"})
    assert plan.kinds == ("pause", "kill") or plan.kinds == ("kill", "pause")
    assert len(plan.faults) == 12


def test_the_order_of_arms_is_drawn_and_repeatable() -> None:
    orders = {tuple(arm_order(["a", "b"], seed)) for seed in range(20)}
    assert orders == {("a", "b"), ("b", "a")}
    assert arm_order(["a", "b"], 3) == arm_order(["a", "b"], 3)
