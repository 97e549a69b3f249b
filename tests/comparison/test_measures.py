"""The figures of the honest campaign, where each is known by construction."""

from __future__ import annotations

import pytest

from comparison.measures import ORPHANING, measure, pool

from .planted import Planted, S, fault


def test_recovery_is_from_the_fault_to_the_successors_first_call_of_the_orphaned_step() -> None:
    found = measure(Planted().case())
    kill, pause = found.recoveries
    assert (kill.kind, kill.run) == ("kill", "run-0")
    assert kill.takeover == pytest.approx(1.995)
    assert (pause.kind, pause.run) == ("pause", "run-1")
    assert pause.takeover == pytest.approx(1.995)
    assert [found.in_band(kind) for kind in ORPHANING] == [(1, 1), (1, 1), (0, 0), (0, 0)]


def test_a_victim_that_claims_again_under_a_newer_fence_has_taken_over_from_itself() -> None:
    planted = Planted()
    planted.records = planted.records[:8]  # up to the call that the fault aborted
    planted.call("run-0", "1.0", 1, "A", at=3.0, ends=3.1)
    assert measure(planted.case()).recoveries[0].takeover is None, "the same owner goes on"
    planted.call("run-0", "1.0", 2, "A", at=4.0, ends=4.1)
    assert measure(planted.case()).recoveries[0].takeover == pytest.approx(1.995)


def test_an_orphan_that_nobody_took_over_is_censored_not_dropped() -> None:
    planted = Planted()
    planted.records = planted.records[:8]  # up to the call that A's death aborted
    found = measure(planted.case())
    assert found.recoveries[0].takeover is None
    assert found.takeover["kill"] is None
    assert len(found.never_taken_over("kill")) == 1


def test_a_run_that_a_second_worker_was_at_all_along_was_not_left_alone() -> None:
    planted = Planted()
    planted.records = planted.records[:8]  # up to the call that A's death aborted
    planted.call("run-0", "1.1", 1, "B", at=2.2, ends=2.3)
    never = measure(planted.case()).recoveries[0]
    assert (never.takeover, never.shared) == (None, False), "a sibling's call waits for nobody"
    planted.ownerships = []
    planted.call("run-0", "2.0", 1, "B", at=2.5, ends=2.6)
    found = measure(planted.case())
    assert found.recoveries[0].takeover == found.recoveries[0].owned == pytest.approx(0.495)
    assert found.shared("kill") == 1
    assert found.never_taken_over("kill") == []


def test_a_victim_that_recorded_its_step_in_the_end_had_it_taken_over_by_nobody() -> None:
    planted = Planted()
    planted.records = [r for r in planted.records if not 11.9 * S < r.t_ns < 12.2 * S]
    planted.writes = [w for w in planted.writes if w.key != "run-1/1.0"]
    planted.write("run-1", "1.0", 1, "C", at=13.1)
    planted.call("run-1", "2.0", 2, "B", at=13.5, ends=13.6)
    [pause] = measure(planted.case()).after("pause")
    assert (pause.takeover, pause.shared) == (None, False)


def test_after_the_last_step_a_second_worker_has_gone_on_when_it_has_recorded_it() -> None:
    planted = Planted()
    planted.records = planted.records[:8]
    assert measure(planted.case()).recoveries[0].takeover is None
    planted.call("run-0", "1.0", 1, "B", at=1.95, ends=4.1)
    found = measure(planted.case()).recoveries[0]
    assert found.takeover == pytest.approx(2.145), "B's own record of the step, at 4.15"
    assert found.shared


def test_duplicates_are_counted_by_what_became_of_the_earlier_call() -> None:
    found = measure(Planted().case()).duplicates
    assert found.by_cause["aborted in flight"]["model"] == 1
    assert found.by_cause["overlap"]["model"] == 1
    assert found.count("model") == 2
    assert found.count("tool") == 0
    # A's call reached nobody, C's reached its (frozen) caller: that is the pair of bounds.
    assert found.tokens == [110, 220]
    assert found.micro_usd == [1000, 2000]


def test_what_an_orphan_cost_twice_is_told_from_what_other_runs_did() -> None:
    planted = Planted()
    for begun in (22.2, 22.4):
        planted.call("run-8", "0.0", 1, "B", at=begun, ends=begun + 0.1)
    planted.faults.append(fault(3, "stall", "B", "run-2/1.0", at=21.95, resumed=21.99))
    found = measure(planted.case())
    assert (found.duplicate_calls, found.duplicates_of_orphans) == (3, 2)
    assert pool([found, found]).duplicates_of_orphans == 4
    assert (len(found.recoveries), found.orphaned_by_need) == (2, 2)
    planted.faults[0] = fault(1, "stall", "A", "run-0/1.0", at=2.0, resumed=6.0)
    found = measure(planted.case())
    assert (len(found.recoveries), found.orphaned_by_need) == (2, 1)


def test_a_call_after_the_record_is_the_duplicate_that_must_not_be() -> None:
    planted = Planted()
    planted.call("run-0", "0.0", 2, "B", at=4.5, ends=4.6)
    found = measure(planted.case()).duplicates
    assert found.by_cause["replayed though recorded"]["model"] == 1


def test_a_zombies_call_is_counted_whether_or_not_it_is_refused() -> None:
    planted = Planted()
    planted.call("run-1", "1.0", 1, "C", at=13.1, ends=13.11, outcome="refused")
    planted.call("run-1", "2.0", 1, "C", at=13.2, ends=13.3)  # past the world: nobody called it yet
    found = measure(planted.case()).zombies
    assert (found.spared, found.calls_made, found.calls_refused) == (1, 2, 1)


def test_without_fences_a_zombie_is_whoever_is_not_the_owner_on_record() -> None:
    planted = Planted()
    planted.call("run-1", "2.0", 0, "C", at=13.2, ends=13.3)
    planted.claim("run-9", 1, "C", at=13.4)
    planted.call("run-9", "0.0", 0, "C", at=13.5, ends=13.6)
    found = measure(planted.case()).zombies
    assert found.calls_made == 1, "B owns run-1 by then; run-9 is C's own"


def test_an_accepted_stale_write_is_counted_as_tried_and_accepted() -> None:
    planted = Planted()
    planted.write("run-1", "1.0", 1, "C", at=13.1)
    found = measure(planted.case()).zombies
    assert (found.writes_tried, found.writes_accepted) == (1, 1)


def test_a_run_changes_hands_before_its_step_is_called_again() -> None:
    planted = Planted()
    kill, _ = measure(planted.case()).recoveries
    assert (kill.owned, kill.takeover) == (pytest.approx(1.895), pytest.approx(1.995))
    planted.ownerships = []
    kill, _ = measure(planted.case()).recoveries
    assert kill.owned == kill.takeover, "no record: the call is the first that is known"


def test_a_cancellation_is_timed_up_to_its_last_call() -> None:
    [found] = measure(Planted().case()).cancellations
    assert found.acknowledged == pytest.approx(0.01)
    assert found.ended == pytest.approx(0.1)
    assert found.last_begin is None
    assert found.last_end == pytest.approx(0.05)


def test_a_run_that_never_ended_is_lost() -> None:
    planted = Planted()
    del planted.ends["run-1"]
    assert measure(planted.case()).runs_lost == 1


def test_campaigns_are_pooled_sample_by_sample_with_their_faults_kept_apart() -> None:
    one = measure(Planted().case())
    both = pool([one, one])
    assert both.faults == 4
    assert len({r.fault for r in both.recoveries}) == 4
    assert both.takeover["kill"] is not None
    assert (both.takeover["kill"].n, both.takeover["kill"].blocks) == (2, 2)
    assert both.duplicates.count("model") == 4
    assert both.duplicates.tokens == [220, 440]
    assert both.zombies.spared == 2
    assert both.runs_started == 8
    assert pool([one]) == one


def test_a_run_that_was_hit_is_kept_or_taken_and_took_longer_than_its_twin() -> None:
    planted = Planted()
    planted.ends["run-0"] = planted.ends["run-0"].model_copy(update={"t_ns": 8 * S})
    kill, pause = measure(planted.case()).hits
    assert (kill.kind, kill.run, kill.taken, kill.penalty) == ("kill", "run-0", True, 3.0)
    assert (pause.kind, pause.run, pause.taken) == ("pause", "run-1", True)


def test_a_worker_that_keeps_its_run_through_a_stall_has_lost_nothing_but_time() -> None:
    planted = Planted()
    planted.faults = [fault(1, "stall", "A", "run-0/0.0", at=1.05, resumed=1.08)]
    found = measure(planted.case())
    assert [hit.taken for hit in found.hit_by("stall")] == [False]
    assert found.recoveries == (), "a stall need not cost the run, so nobody is waited for"


def test_a_cancellation_that_came_after_the_end_is_not_timed() -> None:
    planted = Planted()
    late = planted.cancellations[0].model_copy(update={"ended_ns": 21 * S})
    planted.cancellations.append(late)
    assert len(measure(planted.case()).cancellations) == 1
