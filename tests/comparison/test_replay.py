"""A stored experiment is read back whole, refused when it would be another, and carried out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from comparison.arms import find_arm
from comparison.difference import changes
from comparison.main import compare
from comparison.plan import make_plan, spread
from comparison.questions import QUESTIONS
from comparison.replay import read_experiment, replay, surroundings
from comparison.results import note
from two_workers import BadInput

ARMS = ["hand_rolled", "temporal+tuned"]


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """What a comparison of two blocks notes of itself."""
    plans = {f"block-{seed:02d}": plan(seed) for seed in (1, 2)}
    note(tmp_path, ARMS, plans)
    return tmp_path


def plan(seed: int) -> Any:
    return make_plan(
        seed=seed,
        workers=2,
        investigations=4,
        cells=spread({"kill": 3, "pause": 1}),
        cancellations=1,
        questions=QUESTIONS,
    )


def test_the_experiment_is_read_back_as_it_was_planned(stored: Path) -> None:
    found = read_experiment(stored)
    assert found.seed == 1
    assert found.arms == [find_arm(name) for name in ARMS]
    assert found.plans == {"block-01": plan(1), "block-02": plan(2)}


def changed(stored: Path, change: dict[str, Any]) -> None:
    noted = json.loads((stored / "config.json").read_text())
    (stored / "config.json").write_text(json.dumps({**noted, **change}))


def test_an_arm_with_other_settings_would_be_another_experiment(stored: Path) -> None:
    settings = {name: dict(find_arm(name).env) for name in ARMS}
    settings["hand_rolled"]["HAND_ROLLED_LEASE_TTL"] = "7"
    changed(stored, {"settings": settings})
    with pytest.raises(BadInput, match="measured with HAND_ROLLED_LEASE_TTL=7 and now has"):
        read_experiment(stored)


def test_a_plan_of_another_version_is_one_clear_error(stored: Path) -> None:
    noted = json.loads((stored / "config.json").read_text())
    noted["campaigns"]["block-01"]["faults"][0]["kind"] = "meteorite"
    changed(stored, noted)
    with pytest.raises(BadInput, match="planned by another version"):
        read_experiment(stored)


def test_no_comparison_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="not the results of a whole comparison"):
        read_experiment(tmp_path / "nowhere")


def test_what_is_not_the_same_around_two_runs_is_said() -> None:
    then, now = {"python": "3.11", "commit": "a"}, {"python": "3.11", "commit": "b", "cpus": "2"}
    assert surroundings(then, now) == ["commit: a then, b now", "cpus: unknown then, 2 now"]


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_a_replay_brings_the_same_faults_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await compare(
        arms=["hand_rolled"],
        seed=5,
        workers=2,
        investigations=3,
        faults={"kill": 2},
        results=tmp_path,
    )
    [first] = [path for path in (tmp_path / "compare").iterdir() if not path.is_symlink()]
    await replay(first, results=tmp_path / "again")
    second = (tmp_path / "again" / "compare" / "latest").resolve()
    assert read_experiment(second).plans == read_experiment(first).plans
    assert "not the same schedule" in capsys.readouterr().out
    assert {change.arm for change in changes(first, second)} == {"hand_rolled"}
