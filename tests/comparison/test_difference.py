"""A build that got worse does not pass because a figure is missing, or is a count of more runs."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from comparison.difference import METRICS, Change, broken, read_limit
from comparison.measures import Measures, measure
from comparison.plan import make_plan, spread
from comparison.questions import QUESTIONS
from comparison.results import note
from comparison.stats import Interval
from two_workers.cli.compare import diff

from .planted import Planted, fault
from .stored import ARMS, keep


@pytest.fixture
def before(done: Path) -> Path:
    noted(done, seed=1, kills=1)
    return done


@pytest.fixture
def after(before: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(before, tmp_path / "after"))


def noted(home: Path, *, seed: int, kills: int) -> None:
    plan = make_plan(
        seed=seed,
        workers=2,
        investigations=3,
        cells=spread({"kill": kills}),
        cancellations=1,
        questions=QUESTIONS,
    )
    note(home, ARMS, {"block-01": plan})


def code(before: Path, after: Path, *limits: str) -> int:
    """The exit code of `two-workers diff`."""
    options = [text for limit in limits for text in ("--fail-on", limit)]
    done = diff.main([str(before), str(after), *options], standalone_mode=False)
    assert isinstance(done, int)
    return done


def without_faults(home: Path) -> None:
    planted = Planted()
    planted.faults = []
    keep(planted.case("hand_rolled"), home / "block-01" / "hand_rolled")


def test_a_build_without_the_gated_figure_does_not_pass(
    before: Path, after: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    limit = "recovery_p50:+20%"
    assert code(before, after, limit) == 0
    without_faults(after)
    assert code(before, after, limit) == 2
    said = capsys.readouterr().err
    assert "hand_rolled recovery_p50: the report after does not have it" in said
    assert code(after, before, limit) == 2, "nor the other way round"
    assert code(before, after, "lost:+0") == 0, "what is not asked for may be missing"


def test_a_limit_on_a_figure_that_neither_has_is_not_kept(before: Path, after: Path) -> None:
    assert code(before, after, "mute_p50:+20%") == 2


def test_a_failed_verdict_fails_without_any_limit(
    before: Path, after: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planted = Planted()
    planted.write("run-1", "1.0", 1, "C", at=13.1)
    keep(planted.case("hand_rolled"), after / "block-01" / "hand_rolled")
    assert code(before, after) == 1
    assert "FAIL: hand_rolled INV-FENCE" in capsys.readouterr().err


def test_two_experiments_are_not_taken_for_one(
    before: Path, after: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code(before, after)
    assert "Not the same experiment" not in capsys.readouterr().out
    noted(after, seed=2, kills=3)
    code(before, after)
    said = capsys.readouterr().out
    assert "Not the same experiment" in said
    assert "seed: 1 before, 2 after" in said
    assert "faults: kill: 1 before, 3 after" in said


def came_back(spared: int, calls: int) -> Measures:
    found = measure(Planted().case())
    return replace(found, zombies=replace(found.zombies, spared=spared, calls_made=calls))


def change(metric: str, old: Measures, new: Measures) -> Change:
    return Change("hand_rolled", metric, METRICS[metric](old), METRICS[metric](new))


def test_zombie_calls_are_counted_for_each_worker_that_came_back() -> None:
    metric = "zombie_calls_per_return"
    limit = [read_limit(f"{metric}:+20%")]
    more_faults = change(metric, came_back(4, 4), came_back(40, 40))
    assert more_faults.old is not None
    assert more_faults.new is not None
    assert more_faults.old.value == more_faults.new.value == 1.0
    assert broken([change(metric, came_back(4, 4), came_back(4, 8))], limit) == [], "noise"
    worse = change(metric, came_back(40, 40), came_back(40, 120))
    assert broken([worse], limit) == [worse]
    assert METRICS[metric](came_back(0, 0)) is None, "nobody came back: not measured, not 0"


def test_duplicates_do_not_look_fewer_beside_more_runs_without_faults() -> None:
    value = METRICS["duplicates_per_orphan"]
    crowded = Planted()
    for number in range(20):
        crowded.step(f"filler-{number}", "0.0", 1, "B", at=15.0 + number / 10)
    assert value(measure(crowded.case())) == value(measure(Planted().case()))
    found = value(measure(Planted().case()))
    assert found is not None
    assert found.value == 1.0, "two orphans, a call of each made twice"


def test_a_rise_without_an_interval_is_said() -> None:
    unsure = Interval(3.0, float("-inf"), float("inf"))
    assert "one fault has no interval" in str(
        Change("hand_rolled", "recovery_p50", replace(unsure, value=2.0), unsure)
    )


def test_a_share_of_a_figure_below_zero_is_a_rise_too() -> None:
    limit = read_limit("penalty_p50:+20%")
    assert limit.allows(-5.0, -5.0)
    assert limit.allows(-5.0, -4.1)
    assert not limit.allows(-5.0, -3.9)
    assert limit.allows(float("inf"), float("inf"))


def test_a_machine_that_was_busier_is_said_to_have_been(
    before: Path, after: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for home, share in ((before, 0.16), (after, 0.75)):
        place = home / "block-01" / "hand_rolled" / "evidence.json"
        evidence = json.loads(place.read_text())
        place.write_text(json.dumps({**evidence, "cpu_pressure": share}))
    assert code(before, after) == 0
    said = capsys.readouterr().out
    assert "hand_rolled, time in which some process waited for a CPU: 16% before, 75%" in said
    assert "temporal+tuned, time in which" not in said


def test_a_takeover_that_need_not_have_been_can_be_limited_too() -> None:
    planted = Planted()
    for kind in ("stall", "restart"):
        planted.faults[0] = fault(1, kind, "A", "run-0/1.0", at=2.0, resumed=6.0)
        found = METRICS[f"{kind}_p50"](measure(planted.case()))
        assert found is not None
        assert found.value == pytest.approx(1.995)
