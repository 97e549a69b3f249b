"""The checks of the crowd convict a planted lie, excuse what is nobody's fault, and say what an arm
never promised."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from comparison.arms import ARMS
from comparison.checks import CHECKS, judge
from comparison.crowd.notes import Count, LimitsSet
from comparison.promises import NOT_PROMISED
from comparison.verdicts import Outcome, Verdict, pool, worst
from two_workers import Limits, RunState

from .planted import Planted, S
from .planted_crowd import PlantedCrowd, word


def verdicts(crowd: PlantedCrowd, arm: str = "hand_rolled") -> dict[str, Verdict]:
    return {verdict.invariant: verdict for verdict in judge(crowd.beside(Planted(), arm))}


def hears(crowd: PlantedCrowd, *heard: int) -> None:
    crowd.ends["blue-0"] = crowd.ends["blue-0"].model_copy(update={"result": list(heard)})


def a_word_is_heard_twice(crowd: PlantedCrowd) -> None:
    hears(crowd, 0, 0, 1)


def a_word_is_lost(crowd: PlantedCrowd) -> None:
    hears(crowd, 0)


def words_change_places(crowd: PlantedCrowd) -> None:
    hears(crowd, 1, 0)


def a_run_sleeps_through_its_word(crowd: PlantedCrowd) -> None:
    waits = {"state": RunState.WAITING, "state_again": RunState.WAITING, "result": None}
    crowd.ends["blue-0"] = crowd.ends["blue-0"].model_copy(update=waits)


def three_calls_in_a_pool_of_two(crowd: PlantedCrowd) -> None:
    for number in range(3):
        crowd.call(f"red-{number}", "1.0", 1, "B", at=8.0 + number / 100, ends=8.5)


def two_runs_of_a_tenant_that_may_have_one(crowd: PlantedCrowd) -> None:
    crowd.call("grey-0", "1.0", 1, "A", at=8.0, ends=8.5)
    crowd.call("grey-1", "1.0", 1, "B", at=8.1, ends=8.5)


def a_slot_leaks(crowd: PlantedCrowd) -> None:
    crowd.counts = [Count(resource="pool:crowd", counted=1, held=1)]


def a_counter_is_wrong(crowd: PlantedCrowd) -> None:
    crowd.counts = [Count(resource="active", counted=1, held=0)]


def a_run_settles_more_than_its_budget(crowd: PlantedCrowd) -> None:
    crowd.errands["purse-0"] = crowd.errands["purse-0"].model_copy(update={"cost": 2000})


def a_run_goes_on_without_money(crowd: PlantedCrowd) -> None:
    crowd.call("purse-0", "1.0", 1, "A", at=8.0, ends=8.1)


def money_stays_put_aside(crowd: PlantedCrowd) -> None:
    crowd.reserved = 500


def the_flood_goes_first(crowd: PlantedCrowd) -> None:
    crowd.ownerships = [o for o in crowd.ownerships if o.what != "blue-0"]
    crowd.claim("blue-0", 1, "A", at=5.5)


def an_innocent_run_is_failed_as_poison(crowd: PlantedCrowd) -> None:
    crowd.fail("white-0", "Poison: its worker died 2 times while it ran alone")


def a_poisonous_run_kills_for_ever(crowd: PlantedCrowd) -> None:
    runs = {"state": RunState.RUNNING, "state_again": RunState.RUNNING, "failure": None}
    crowd.ends["black-0"] = crowd.ends["black-0"].model_copy(update=runs)


PLANTED_IN_THE_CROWD = [
    ("INV-SIGNAL", a_word_is_heard_twice),
    ("INV-SIGNAL", a_word_is_lost),
    ("INV-SIGNAL", words_change_places),
    ("INV-SIGNAL", a_run_sleeps_through_its_word),
    ("INV-CAP", three_calls_in_a_pool_of_two),
    ("INV-CAP", two_runs_of_a_tenant_that_may_have_one),
    ("INV-CAP", a_slot_leaks),
    ("INV-CAP", a_counter_is_wrong),
    ("INV-BUDGET", a_run_settles_more_than_its_budget),
    ("INV-BUDGET", a_run_goes_on_without_money),
    ("INV-BUDGET", money_stays_put_aside),
    ("INV-FAIR", the_flood_goes_first),
    ("INV-BLAME", an_innocent_run_is_failed_as_poison),
    ("INV-BLAME", a_poisonous_run_kills_for_ever),
]


@pytest.mark.parametrize(("invariant", "plant"), PLANTED_IN_THE_CROWD)
def test_a_planted_lie_is_convicted_by_its_check(
    invariant: str, plant: Callable[[PlantedCrowd], None]
) -> None:
    crowd = PlantedCrowd()
    plant(crowd)
    verdict = verdicts(crowd)[invariant]
    assert verdict.outcome is Outcome.FAIL, verdict.detail
    assert verdict.violations


def test_without_a_crowd_nothing_of_it_passes() -> None:
    found = {verdict.invariant: verdict for verdict in judge(Planted().case())}
    for invariant, _ in PLANTED_IN_THE_CROWD:
        assert found[invariant].outcome is Outcome.UNKNOWN


def test_the_call_of_a_zombie_stands_beside_the_limit() -> None:
    crowd = PlantedCrowd()
    crowd.call("red-0", "1.0", 1, "A", at=8.0, ends=8.9)
    crowd.claim("red-0", 2, "B", at=8.1)  # A is paused in its call, and its slot goes to others
    crowd.call("red-0", "1.0", 2, "B", at=8.2, ends=8.8)
    crowd.call("red-1", "1.0", 1, "B", at=8.3, ends=8.8)
    verdict = verdicts(crowd)["INV-CAP"]
    assert verdict.outcome is Outcome.PASS, verdict.detail
    assert verdict.detail.endswith("1 calls of zombies beside them")


def test_more_is_allowed_once_a_limit_is_raised() -> None:
    crowd = PlantedCrowd()
    three_calls_in_a_pool_of_two(crowd)
    raised = Limits(pools={"crowd": 3}, tenants={"grey": 1})
    crowd.limits.append(LimitsSet(asked_ns=7 * S, acknowledged_ns=8 * S, limits=raised))
    assert verdicts(crowd)["INV-CAP"].outcome is Outcome.PASS


def test_a_call_that_a_fault_cut_off_is_not_the_budgets() -> None:
    crowd = PlantedCrowd()
    crowd.call("purse-0", "0.0", 2, "B", at=8.0, ends=8.1)  # the same step, by its new owner
    assert verdicts(crowd)["INV-BUDGET"].outcome is Outcome.PASS


def test_a_word_that_was_refused_at_the_end_need_not_be_heard() -> None:
    crowd = PlantedCrowd()
    late = word("blue-0", 2, "late", times=1, at=9.0)
    crowd.sent.append(late.model_copy(update={"acknowledged_ns": None}))
    assert verdicts(crowd)["INV-SIGNAL"].outcome is Outcome.PASS


def test_a_run_that_waits_for_a_word_that_nobody_sent_decides_nothing() -> None:
    crowd = PlantedCrowd()
    a_run_sleeps_through_its_word(crowd)
    crowd.sent = [sent for sent in crowd.sent if sent.number == 0]
    found = verdicts(crowd)
    assert found["INV-SIGNAL"].outcome is Outcome.UNKNOWN
    assert found["INV-LIVE"].outcome is Outcome.FAIL, "but it should have ended"


def test_what_an_arm_never_promised_is_said_with_what_was_seen() -> None:
    crowd = PlantedCrowd()
    the_flood_goes_first(crowd)
    verdict = verdicts(crowd, "temporal+tuned")["INV-FAIR"]
    assert verdict.outcome is Outcome.NOT_PROMISED
    assert verdict.summary == (
        "not promised, since its gate grants first come, first served; "
        "seen: 3 waits beside a flood, 1 against the rule"
    )
    assert worst([verdict.outcome, Outcome.PASS]) is Outcome.PASS
    [pooled] = pool([[verdict], [verdict]])
    assert pooled.summary.endswith("seen: 6 waits beside a flood, 2 against the rule")


def test_an_arm_without_a_crowd_promises_nothing_of_it() -> None:
    found = {verdict.invariant: verdict for verdict in judge(Planted().case("story"))}
    for invariant, _ in PLANTED_IN_THE_CROWD:
        assert found[invariant].outcome is Outcome.NOT_PROMISED
        assert "seen" not in found[invariant].detail


def test_the_table_of_promises_names_every_engine_and_only_what_is_checked() -> None:
    assert set(NOT_PROMISED) == {arm.engine for arm in ARMS.values()}
    assert {name for lacking in NOT_PROMISED.values() for name in lacking} <= {
        check.invariant for check in CHECKS
    }
