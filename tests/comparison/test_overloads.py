"""Overload as a part of a report: measured once for each arm, and kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from comparison.arms import find_arm
from comparison.overloads import has_overloads, keep_overloads, read_overloads


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_an_arm_that_knows_no_limits_is_loaded_without_them_only(tmp_path: Path) -> None:
    story, said = find_arm("story"), list[str]()
    half_done = tmp_path / "overload" / "story" / "without" / "logs"
    half_done.mkdir(parents=True)
    (half_done / "an interrupted run's").touch()
    assert not has_overloads(story, tmp_path)
    await keep_overloads(story, tmp_path, said.append)
    assert has_overloads(story, tmp_path)
    assert read_overloads(tmp_path, "story", made=True).keys() == {"without"}
    assert read_overloads(tmp_path, "hand_rolled", made=False) == {}
    assert not (half_done / "an interrupted run's").exists()
    assert said[-2] == "twice its capacity arrives, within limits"
    assert "limit" in said[-1], "and why that could not be"
