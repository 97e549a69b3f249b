"""Every check passes an honest campaign, convicts a planted lie, and never passes vacuously."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from comparison.checks import CHECKS, judge
from comparison.evidence import Case
from comparison.verdicts import Outcome, Verdict, pool, worst
from two_workers import RunState

from .planted import Planted, S, end, fault
from .planted_crowd import PlantedCrowd
from .test_crowd_checks import PLANTED_IN_THE_CROWD


def verdicts(case: Case) -> dict[str, Verdict]:
    return {verdict.invariant: verdict for verdict in judge(case)}


def test_an_honest_campaign_passes_every_check_with_evidence() -> None:
    for verdict in judge(PlantedCrowd().beside(Planted())):
        assert verdict.outcome is Outcome.PASS, f"{verdict.invariant}: {verdict.detail}"
        assert verdict.tested > 0


def test_without_evidence_no_check_passes() -> None:
    planted = Planted()
    planted.starts, planted.ends, planted.records = [], {}, []
    planted.writes, planted.ownerships = [], []
    planted.faults, planted.cancellations = [], []
    assert {verdict.outcome for verdict in judge(planted.case())} == {Outcome.UNKNOWN}


def two_owners_under_one_fence(planted: Planted) -> None:
    planted.call("run-0", "1.0", 2, "D", at=4.05, ends=4.2)


def a_generation_is_skipped(planted: Planted) -> None:
    planted.claim("run-0", 4, "D", at=6.0)


def a_stale_write_is_accepted(planted: Planted) -> None:
    planted.write("run-1", "1.0", 1, "C", at=13.1)


def a_recorded_step_is_called_again(planted: Planted) -> None:
    planted.call("run-0", "0.0", 2, "B", at=4.5, ends=4.6)


def an_orphan_is_stranded(planted: Planted) -> None:
    planted.records = [r for r in planted.records if not in_takeover_of_run_0(planted, r)]
    planted.ownerships = [o for o in planted.ownerships if (o.what, o.fence) != ("run-0", (2,))]
    planted.writes = [w for w in planted.writes if w.key != "run-0/1.0"]


def in_takeover_of_run_0(planted: Planted, record: object) -> bool:
    calls = {
        r.call
        for r in planted.records
        if hasattr(r, "identity") and (r.identity.key, r.identity.fence) == ("run-0/1.0", (2,))
    }
    return getattr(record, "call", None) in calls


def an_acknowledged_start_is_unknown(planted: Planted) -> None:
    del planted.ends["run-0"]


def a_result_changes_after_the_end(planted: Planted) -> None:
    planted.ends["run-0"] = planted.ends["run-0"].model_copy(update={"result_again": {}})


def an_ended_run_runs_again(planted: Planted) -> None:
    again = {"state_again": RunState.RUNNING}
    planted.ends["run-0"] = planted.ends["run-0"].model_copy(update=again)


def two_different_reports_are_handed_in(planted: Planted) -> None:
    for n, body in enumerate(("one", "another")):
        planted.call("run-0", "2.0", 2, "B", at=5 + n, ends=5.1 + n, kind="report", body=body)


def a_run_never_ends(planted: Planted) -> None:
    planted.ends["run-1"] = end("run-1", state=RunState.RUNNING)


def the_end_came_too_late(planted: Planted) -> None:
    planted.converged_ns = None  # type: ignore[assignment] # what a campaign notes when its bound has passed


def the_report_differs_from_the_twins(planted: Planted) -> None:
    other = {"result": {"answer": "no idea"}, "result_again": {"answer": "no idea"}}
    planted.ends["run-0"] = planted.ends["run-0"].model_copy(update=other)


def a_step_is_missing_from_the_record(planted: Planted) -> None:
    planted.ends["run-0"] = end("run-0", workers="A")


def a_cancelled_run_has_steps_of_its_own(planted: Planted) -> None:
    planted.ends["run-2"] = end("run-2", state=RunState.CANCELLED, workers="BBB")


def a_run_fails_that_did_not_without_faults(planted: Planted) -> None:
    planted.ends["run-0"] = end("run-0", state=RunState.FAILED)


def a_repeated_step_has_another_input(planted: Planted) -> None:
    planted.call("run-1", "1.0", 2, "B", at=12.05, ends=12.1, body="something else")


def a_cancelled_run_is_resumed_by_another(planted: Planted) -> None:
    planted.call("run-2", "1.0", 2, "D", at=24.0, ends=24.1)


def a_cancelled_run_goes_on_with_another(planted: Planted) -> None:
    planted.cancellations = [
        c.model_copy(update={"ended_ns": 30 * S}) for c in planted.cancellations
    ]
    planted.call("run-2", "2.0", 2, "D", at=24.0, ends=24.1)


def a_cancelled_run_goes_on_after_its_end(planted: Planted) -> None:
    planted.call("run-2", "2.0", 1, "B", at=22.2, ends=22.3)


def a_cancelled_run_succeeds_all_the_same(planted: Planted) -> None:
    after = {"state_after": RunState.SUCCEEDED}
    planted.cancellations = [c.model_copy(update=after) for c in planted.cancellations]


def a_step_is_recorded_that_nobody_called(planted: Planted) -> None:
    planted.ends["run-2"] = end("run-2", state=RunState.CANCELLED, workers="BB")
    planted.records = [r for r in planted.records if r.t_ns < 21.5 * S]


def a_paused_worker_goes_on_with_what_another_has(planted: Planted) -> None:
    planted.call("run-1", "2.0", 1, "C", at=13.6, ends=13.7)


def a_worker_that_is_cut_off_goes_on_past_its_timeout(planted: Planted) -> None:
    planted.faults[1] = planted.faults[1].model_copy(update={"kind": "silence"})
    planted.call("run-9", "0.0", 1, "C", at=12.5, ends=12.6)


def a_call_is_missing_from_a_finished_record(planted: Planted) -> None:
    planted.call("run-0", "2.0", 2, "B", at=4.5, ends=4.6)


PLANTED = [
    ("INV-CLAIM", two_owners_under_one_fence),
    ("INV-CLAIM", a_generation_is_skipped),
    ("INV-FENCE", a_stale_write_is_accepted),
    ("INV-RESUME", a_recorded_step_is_called_again),
    ("INV-ORPHAN", an_orphan_is_stranded),
    ("INV-TRUST", a_paused_worker_goes_on_with_what_another_has),
    ("INV-TRUST", a_worker_that_is_cut_off_goes_on_past_its_timeout),
    ("INV-START", an_acknowledged_start_is_unknown),
    ("INV-END", a_result_changes_after_the_end),
    ("INV-END", an_ended_run_runs_again),
    ("INV-END", two_different_reports_are_handed_in),
    ("INV-LIVE", a_run_never_ends),
    ("INV-LIVE", the_end_came_too_late),
    ("INV-SAME", the_report_differs_from_the_twins),
    ("INV-SAME", a_step_is_missing_from_the_record),
    ("INV-SAME", a_cancelled_run_has_steps_of_its_own),
    ("INV-SAME", a_run_fails_that_did_not_without_faults),
    ("INV-KEY", a_repeated_step_has_another_input),
    ("INV-CANCEL", a_cancelled_run_is_resumed_by_another),
    ("INV-CANCEL", a_cancelled_run_goes_on_with_another),
    ("INV-CANCEL", a_cancelled_run_goes_on_after_its_end),
    ("INV-CANCEL", a_cancelled_run_succeeds_all_the_same),
    ("LEDGER", a_step_is_recorded_that_nobody_called),
    ("LEDGER", a_call_is_missing_from_a_finished_record),
]


@pytest.mark.parametrize(("invariant", "plant"), PLANTED)
def test_a_planted_lie_is_convicted_by_its_check(
    invariant: str, plant: Callable[[Planted], None]
) -> None:
    planted = Planted()
    plant(planted)
    verdict = verdicts(planted.case())[invariant]
    assert verdict.outcome is Outcome.FAIL, verdict.detail
    assert verdict.violations


def test_every_check_but_the_undecidable_one_has_a_planted_lie() -> None:
    convicted = {invariant for invariant, _ in PLANTED}
    convicted |= {invariant for invariant, _ in PLANTED_IN_THE_CROWD}
    assert {check.invariant for check in CHECKS} - convicted == {"INV-LEASE"}


def test_a_scheduled_sibling_of_the_batch_under_way_does_not_resume_a_cancelled_run() -> None:
    planted = Planted()
    planted.cancellations = [
        c.model_copy(update={"ended_ns": 30 * S}) for c in planted.cancellations
    ]
    planted.call("run-2", "1.1", 1, "D", at=24.0, ends=24.1)
    assert verdicts(planted.case())["INV-CANCEL"].outcome is Outcome.PASS


def test_a_takeover_from_somebody_left_alone_is_undecided_unless_the_engine_says_why() -> None:
    planted = Planted()
    planted.faults = planted.faults[1:]  # A was never killed, yet B took its run over
    verdict = verdicts(planted.case())["INV-LEASE"]
    assert verdict.outcome is Outcome.UNKNOWN
    assert "the engine's record does not say why" in verdict.detail
    excused = {"cause": "reclaimed: expired under A"}
    planted.ownerships = [
        o.model_copy(update=excused) if (o.what, o.fence) == ("run-0", (2,)) else o
        for o in planted.ownerships
    ]
    assert verdicts(planted.case())["INV-LEASE"].outcome is Outcome.PASS


def test_a_call_that_was_frozen_on_its_way_is_said_and_not_judged() -> None:
    planted = Planted()
    planted.call("run-1", "2.0", 1, "C", at=13.1, ends=13.2)
    verdict = verdicts(planted.case())["INV-TRUST"]
    assert verdict.outcome is Outcome.PASS
    assert verdict.detail == "1 runs at stake; 1 calls may have been frozen on their way"


def test_a_call_that_was_frozen_by_a_later_fault_is_not_held_against_the_earlier_one() -> None:
    planted = Planted()
    again = fault(3, "pause", "C", "run-1/1.0", at=21.9, resumed=24.0)
    planted.faults.append(again)
    planted.call("run-1", "2.0", 1, "C", at=24.1, ends=24.2)
    assert verdicts(planted.case())["INV-TRUST"].outcome is Outcome.PASS
    planted.faults.remove(again)
    assert verdicts(planted.case())["INV-TRUST"].outcome is Outcome.FAIL


def test_a_worker_may_wake_a_little_before_the_harness_hears_of_it() -> None:
    planted = Planted()
    planted.faults[1] = planted.faults[1].model_copy(update={"kind": "stall"})
    planted.call("run-1", "2.0", 1, "C", at=12.9, ends=13.0)
    assert verdicts(planted.case())["INV-TRUST"].outcome is Outcome.PASS


def test_without_a_fence_the_last_claim_says_whose_a_run_is() -> None:
    planted = Planted()
    planted.call("run-1", "2.0", 0, "C", at=13.6, ends=13.7)
    assert verdicts(planted.case("story"))["INV-TRUST"].detail.endswith("1 against the rule")
    planted.claim("run-1", 3, "C", at=13.4)
    assert verdicts(planted.case("story"))["INV-TRUST"].detail.endswith("0 against the rule")


def test_a_fault_that_missed_makes_the_sample_unknown() -> None:
    planted = Planted()
    missed = fault(3, "kill", "B", "run-2/1.0", at=21.95)
    planted.faults.append(missed.model_copy(update={"landed": False, "problem": "not at work"}))
    assert verdicts(planted.case())["INV-ORPHAN"].outcome is Outcome.UNKNOWN


def test_an_orphan_that_was_taken_away_in_time_but_waits_is_no_violation() -> None:
    planted = Planted()
    an_orphan_is_stranded(planted)
    planted.claim("run-0", 2, "nobody", at=3.9)
    assert verdicts(planted.case())["INV-ORPHAN"].outcome is Outcome.PASS


def test_an_orphaned_step_that_the_server_gave_away_in_time_but_waits_is_no_violation() -> None:
    planted = Planted()
    an_orphan_is_stranded(planted)
    planted.claim("run-0/1.0", 2, "nobody", at=3.9)
    assert verdicts(planted.case())["INV-ORPHAN"].outcome is Outcome.PASS


def test_a_step_that_another_worker_hands_in_is_stranded_no_longer() -> None:
    planted = Planted()
    an_orphan_is_stranded(planted)
    planted.write("run-0", "1.0", 1, "A", at=3.0)  # its victim, and too late to be its own
    assert verdicts(planted.case())["INV-ORPHAN"].outcome is Outcome.FAIL
    planted.write("run-0", "1.0", 1, "B", at=3.0)
    assert verdicts(planted.case())["INV-ORPHAN"].outcome is Outcome.PASS


def test_a_run_whose_owner_recorded_the_step_in_time_is_no_orphan() -> None:
    planted = Planted()
    an_orphan_is_stranded(planted)
    planted.write("run-0", "1.0", 1, "A", at=2.0)
    assert verdicts(planted.case())["INV-ORPHAN"].outcome is Outcome.PASS


def test_without_a_successful_twin_sameness_is_unknown() -> None:
    planted = Planted()
    planted.ends["twin-0"] = end("twin-0", state=RunState.FAILED)
    assert verdicts(planted.case())["INV-SAME"].outcome is Outcome.UNKNOWN


def test_the_worst_outcome_decides() -> None:
    assert worst([Outcome.PASS, Outcome.UNKNOWN, Outcome.FAIL]) is Outcome.FAIL
    assert worst([Outcome.PASS, Outcome.UNKNOWN]) is Outcome.UNKNOWN
    assert worst([Outcome.PASS]) is Outcome.PASS
    assert worst([]) is Outcome.UNKNOWN


def test_evidence_survives_being_written_and_read() -> None:
    case = Planted().case()
    again = type(case.evidence).model_validate_json(case.evidence.model_dump_json())
    assert again == case.evidence
    assert math.isclose(again.healed_ns, 23 * S)


def test_pooled_verdicts_are_the_worst_of_those_that_were_tested() -> None:
    honest, idle, lying = Planted(), Planted(), Planted()
    idle.cancellations = []
    a_cancelled_run_succeeds_all_the_same(lying)

    def outcome(*campaigns: Planted) -> Verdict:
        pooled = pool([judge(planted.case()) for planted in campaigns])
        return next(verdict for verdict in pooled if verdict.invariant == "INV-CANCEL")

    assert outcome(honest, idle).outcome is Outcome.PASS
    assert outcome(idle, idle).outcome is Outcome.UNKNOWN
    assert outcome(honest, idle, lying).outcome is Outcome.FAIL
    assert outcome(honest, honest).detail == "2 cancellations"
