"""Every breaker on an engine: it lands on work in flight, and afterwards every run still ends.

What each fault did is judged by the comparison's own checks, from the same evidence.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from comparison.arms import find_arm
from comparison.breakers import network, servers, skew, workers
from comparison.breakers.base import Breaker
from comparison.breakers.trial import Situation, break_once, judge
from comparison.evidence import Case
from comparison.faults import takeovers
from comparison.verdicts import Outcome
from two_workers import RunState

pytestmark = pytest.mark.timeout(300)  # real servers, workers and leases, on a machine of any speed
BOTH = ("hand_rolled", "temporal+tuned")
Make = Callable[[Situation], Breaker]


async def broken(arm: str, make: Make, directory: Path, **options: Any) -> Case:
    """A case of one fault that landed, after which every run succeeded and no check objects."""
    case = await break_once(find_arm(arm), make, directory, **options)
    [fault] = case.evidence.faults
    assert fault.landed, fault.problem
    assert {end.state for end in case.evidence.ends} == {RunState.SUCCEEDED}
    verdicts = {verdict.invariant: verdict for verdict in judge(case)}
    assert [v for v in verdicts.values() if v.outcome is Outcome.FAIL] == []
    for invariant in ("INV-START", "INV-END", "INV-LIVE", "INV-SAME"):
        assert verdicts[invariant].outcome is Outcome.PASS
    return case


def taken_over(case: Case) -> set[str]:
    [fault] = case.evidence.faults
    return set(takeovers(case.calls.ledger.calls.values(), fault))


@pytest.mark.parametrize("arm", BOTH)
async def test_a_mute_worker_loses_its_run(arm: str, tmp_path: Path) -> None:
    case = await broken(arm, lambda at: network.OneWay(at.proxy, "to_server"), tmp_path)
    assert taken_over(case) == {"run-1"}


@pytest.mark.slow
@pytest.mark.parametrize("arm", BOTH)
async def test_a_deaf_workers_record_counts(arm: str, tmp_path: Path) -> None:
    await broken(arm, lambda at: network.OneWay(at.proxy, "to_client"), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("arm", BOTH)
@pytest.mark.parametrize("breaker", [network.Reset, network.HalfClose])
async def test_a_broken_connection_is_replaced(
    arm: str, breaker: Callable[[Any], Breaker], tmp_path: Path
) -> None:
    await broken(arm, lambda at: breaker(at.proxy), tmp_path)


async def test_a_record_whose_reply_was_cut_off_is_not_made_again(tmp_path: Path) -> None:
    case = await broken("hand_rolled", lambda at: network.CutAfterCommit(at.proxy), tmp_path)
    keys = [write.key for write in case.evidence.writes]
    assert len(keys) == len(set(keys))
    assert all(len(calls) == 1 for calls in case.calls.by_key.values()), "nothing was paid twice"


@pytest.mark.slow
async def test_losing_every_session_loses_no_run(tmp_path: Path) -> None:
    await broken(
        "hand_rolled",
        lambda at: servers.SessionsEnded(at.env["DATABASE_URL"]),
        tmp_path,
        breaks_all=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize("arm", BOTH)
async def test_a_server_that_crashed_and_came_back_has_lost_nothing(
    arm: str, tmp_path: Path
) -> None:
    await broken(arm, lambda at: servers.Restarted(at.server), tmp_path, breaks_all=True)


@pytest.mark.slow
@pytest.mark.parametrize("arm", BOTH)
async def test_a_stalled_event_loop_blocks_nobody_else(arm: str, tmp_path: Path) -> None:
    await broken(
        arm,
        lambda at: workers.Stall(at.victim),
        tmp_path,
        app="comparison.stalling:APP",
        worker_envs=({"STALL_SECONDS": "8"}, {"STALL_SECONDS": "8"}),
    )


@pytest.mark.slow
async def test_a_loop_that_stalls_too_long_loses_its_run(tmp_path: Path) -> None:
    """Its heartbeat thread is alive; it stops renewing when the loop no longer ticks."""
    case = await broken(
        "hand_rolled",
        lambda at: workers.Stall(at.victim),
        tmp_path,
        app="comparison.stalling:APP",
        worker_envs=({"STALL_SECONDS": "12"}, {"STALL_SECONDS": "12"}),
    )
    assert taken_over(case) == {"run-1"}


@pytest.mark.slow
@pytest.mark.parametrize("arm", BOTH)
async def test_a_drained_worker_pays_for_nothing_twice(arm: str, tmp_path: Path) -> None:
    case = await broken(arm, lambda at: workers.Drain(at.victim), tmp_path)
    assert all(len(calls) == 1 for calls in case.calls.by_key.values())


@pytest.mark.slow
@pytest.mark.parametrize("arm", BOTH)
async def test_a_paused_idle_worker_holds_nobody_up_for_long(arm: str, tmp_path: Path) -> None:
    await broken(arm, lambda at: workers.IdlePause(at.idle), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [300.0, -300.0])
async def test_a_wrong_wall_clock_changes_nothing(seconds: float, tmp_path: Path) -> None:
    try:
        wrong = skew.skewed(seconds, os.environ)
    except skew.Skipped as reason:
        pytest.skip(str(reason))
    case = await broken(
        "hand_rolled", lambda at: skew.Skew(at.victim), tmp_path, worker_envs=(wrong, wrong)
    )
    assert all(len(calls) == 1 for calls in case.calls.by_key.values())


def test_without_the_library_a_skew_is_skipped_with_a_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(skew, "_PLACES", ())
    with pytest.raises(skew.Skipped, match="libfaketime is not installed"):
        skew.skewed(300, {})
