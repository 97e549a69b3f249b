"""The same seed plans the same experiment, and one purpose does not disturb another."""

from __future__ import annotations

from typing import Any

from comparison.plan import Plan, arm_order, make_plan
from comparison.questions import QUESTIONS

USUAL: dict[str, Any] = {
    "seed": 7,
    "workers": 3,
    "investigations": 12,
    "kills": 8,
    "pauses": 4,
    "silences": 2,
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
    assert kinds == ["kill"] * 7 + ["kill+cancel"] + ["pause"] * 4 + ["silence"] * 2
    assert [fault.number for fault in planned().faults] == list(range(1, 15))
    assert len(set(planned().questions)) == 12


def test_more_faults_do_not_change_the_questions_or_the_phases_of_the_first_ones() -> None:
    usual, more = planned(), planned(kills=20)
    assert more.questions == usual.questions
    assert [f.phase for f in more.faults[:14]] == [f.phase for f in usual.faults]


def test_phases_fall_evenly_over_the_renewal_gap() -> None:
    phases = sorted(fault.phase for fault in planned(kills=400).faults)
    assert max(abs(phase - i / len(phases)) for i, phase in enumerate(phases)) < 0.1


def test_a_silence_comes_when_there_is_something_to_record() -> None:
    silences = [fault for fault in planned(silences=30).faults if fault.kind == "silence"]
    assert {fault.point for fault in silences} == {"reply"}


def test_without_silences_everything_else_stays() -> None:
    plan = planned()
    assert plan.without_silences().silences == 0
    assert len(plan.without_silences().faults) == 12


def test_the_order_of_arms_is_drawn_and_repeatable() -> None:
    orders = {tuple(arm_order(["a", "b"], seed)) for seed in range(20)}
    assert orders == {("a", "b"), ("b", "a")}
    assert arm_order(["a", "b"], 3) == arm_order(["a", "b"], 3)
