"""Every breaker on an engine: it lands on work in flight, and afterwards every run still ends.

What each fault did is judged by the comparison's own checks, from the same evidence.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from comparison.arms import find_arm
from comparison.breakers import catalogue, skew
from comparison.breakers.base import Skipped
from comparison.breakers.once import bring_once
from comparison.checks import judge
from comparison.evidence import Case
from comparison.faults import takeovers
from comparison.kinds import CrashPoint, FaultKind
from comparison.verdicts import Outcome
from two_workers import RunState

pytestmark = pytest.mark.timeout(300)  # real servers, workers and leases, on a machine of any speed
BOTH = ("hand_rolled", "temporal+tuned")


async def broken(arm: str, kind: FaultKind, directory: Path, point: CrashPoint = "reply") -> Case:
    """A case of one fault that landed, after which every run succeeded and no check objects."""
    said: list[str] = []
    case = await bring_once(find_arm(arm), kind, directory, point=point, say=said.append)
    assert case.evidence.faults[-1].landed, said
    assert {end.state for end in case.evidence.ends} == {RunState.SUCCEEDED}
    verdicts = {verdict.invariant: verdict for verdict in judge(case)}
    assert [v for v in verdicts.values() if v.outcome is Outcome.FAIL] == []
    for invariant in ("INV-START", "INV-END", "INV-LIVE"):
        assert verdicts[invariant].outcome is Outcome.PASS
    same = verdicts["INV-SAME"].outcome
    assert same is (Outcome.PASS if case.evidence.faults[-1].owned else Outcome.UNKNOWN)
    return case


def taken_over(case: Case) -> set[str]:
    return set(takeovers(case.calls.ledger.calls.values(), case.evidence.faults[-1]))


def paid_twice(case: Case) -> list[str]:
    return [key for key, calls in case.calls.by_key.items() if len(calls) > 1]


@pytest.mark.parametrize("arm", BOTH)
async def test_a_mute_worker_loses_its_runs(arm: str, tmp_path: Path) -> None:
    case = await broken(arm, "mute", tmp_path)
    assert set(case.evidence.faults[-1].owned) <= taken_over(case)


@pytest.mark.slow
@pytest.mark.parametrize("arm", BOTH)
async def test_a_deaf_workers_record_counts(arm: str, tmp_path: Path) -> None:
    await broken(arm, "deaf", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("arm", BOTH)
@pytest.mark.parametrize("kind", ["reset", "half-close"])
async def test_a_broken_connection_is_replaced(arm: str, kind: FaultKind, tmp_path: Path) -> None:
    await broken(arm, kind, tmp_path)


@pytest.mark.parametrize("arm", BOTH)
async def test_a_record_whose_reply_was_cut_off_is_not_made_again(arm: str, tmp_path: Path) -> None:
    case = await broken(arm, "cut", tmp_path)
    keys = [write.key for write in case.evidence.writes]
    assert len(keys) == len(set(keys))
    assert paid_twice(case) == []


@pytest.mark.slow
async def test_losing_every_session_loses_no_run(tmp_path: Path) -> None:
    await broken("hand_rolled", "sessions", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("arm", BOTH)
async def test_a_server_that_crashed_and_came_back_has_lost_nothing(
    arm: str, tmp_path: Path
) -> None:
    await broken(arm, "restart", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("arm", BOTH)
async def test_a_stalled_event_loop_blocks_nobody_else(arm: str, tmp_path: Path) -> None:
    await broken(arm, "stall", tmp_path)


@pytest.mark.slow
async def test_a_loop_that_stalls_too_long_loses_its_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its heartbeat thread is alive; it stops renewing when the loop no longer ticks."""
    monkeypatch.setattr(catalogue, "STALL_SECONDS", 12.0)
    case = await broken("hand_rolled", "stall", tmp_path)
    assert set(case.evidence.faults[-1].owned) <= taken_over(case)


@pytest.mark.slow
@pytest.mark.parametrize("arm", BOTH)
async def test_a_drained_worker_pays_for_nothing_twice(arm: str, tmp_path: Path) -> None:
    assert paid_twice(await broken(arm, "drain", tmp_path)) == []


@pytest.mark.slow
@pytest.mark.parametrize("arm", BOTH)
async def test_a_paused_idle_worker_holds_nobody_up_for_long(arm: str, tmp_path: Path) -> None:
    await broken(arm, "pause", tmp_path, "idle")


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [300.0, -300.0])
async def test_a_wrong_wall_clock_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, seconds: float, tmp_path: Path
) -> None:
    try:
        skew.skewed(seconds, os.environ)
    except Skipped as reason:
        pytest.skip(str(reason))
    monkeypatch.setattr(catalogue, "SKEW_SECONDS", seconds)
    case = await broken("hand_rolled", "skew", tmp_path, "idle")
    assert paid_twice(case) == []


def test_without_the_library_a_skew_is_skipped_with_a_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(skew, "_PLACES", ())
    with pytest.raises(Skipped, match="libfaketime is not installed"):
        skew.skewed(300, {})
