"""Twice the load that an engine can take: limits bound what is at work, and how fast money goes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from comparison.arms import find_arm
from comparison.breakers.overload import WITH, WITHOUT, overload

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.mark.parametrize("arm", ["hand_rolled", "temporal+tuned"])
async def test_limits_hold_at_twice_the_capacity(arm: str, tmp_path: Path) -> None:
    free = await overload(find_arm(arm), tmp_path / "free", WITHOUT, arrivals=16)
    held = await overload(find_arm(arm), tmp_path / "held", WITH, arrivals=16)
    assert free.most_runs_at_work > 2
    assert free.most_model_calls_at_once > 1
    assert held.most_runs_at_work <= 2
    assert held.most_model_calls_at_once == 1
    assert not held.exceeded
    assert replace(free, limits=WITH).exceeded
