"""The sweep: its settings and sums by hand, and one short round on each engine for real."""

from __future__ import annotations

import io
import json
import random
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.console import Console

from comparison.arms import ARMS, find_arm
from comparison.sweep.main import sweep
from comparison.sweep.point import Point, Spell, SpellKind
from comparison.sweep.round import blows
from comparison.sweep.settings import with_lease, with_room
from comparison.sweep.show import rows, to_markdown, to_svg, to_terminal
from hand_rolled.settings import read_settings
from temporal_version.settings import read as read_temporal
from two_workers import BadInput


def spell(kind: SpellKind, lasted: float | None, taken: float | None) -> Spell:
    return Spell(kind=kind, lasted=lasted, taken=taken, watched=20.0)


def point(arm: str = "hand_rolled", lease: float = 2.0, taken: float | None = 2.0) -> Point:
    """Four kills, and stops of which those from 2 s on cost the run."""
    stops = [spell("pause", length, 2.5 if length >= 2 else None) for length in (0.5, 1.5, 2.0, 3)]
    kills = [spell("kill", None, taken) for _ in range(4)]
    return Point(
        arm=arm,
        lease=lease,
        gap=lease / 4,
        predicted=(1.5, 2.4),
        spells=(*kills, *stops, spell("stall", 3.0, None)),
        heartbeats=120.0,
        writes=None,
    )


@pytest.mark.parametrize("lease", [1.0, 2.0, 30.0])
def test_an_engine_accepts_every_lease_with_all_that_follows_from_it(lease: float) -> None:
    own = with_lease(find_arm("hand_rolled"), lease)
    found = read_settings({**own.env, "DATABASE_URL": "postgresql://u@h/d"})
    assert (found.lease_ttl, found.heartbeat_interval) == (lease, lease / 4)
    other = with_lease(find_arm("temporal+tuned"), lease)
    settings = read_temporal({**other.env, **with_room(other, 1)})
    assert (settings.heartbeat_timeout, settings.beat_interval) == (lease, lease / 4)
    assert settings.concurrency == 1
    assert own.predict("kill")[0] == 0.75 * lease, "the band moves with the lease"
    assert find_arm("hand_rolled") is ARMS["hand_rolled"], "the arm of the comparison is untouched"


def test_a_lease_or_an_arm_that_cannot_be_matched_is_refused() -> None:
    with pytest.raises(BadInput, match=r"--lease 0\.5: expected 1 to 600 seconds"):
        with_lease(find_arm("hand_rolled"), 0.5)
    with pytest.raises(BadInput, match="do not follow the lease"):
        with_lease(find_arm("temporal"), 2.0)


def test_spells_cover_their_range_and_a_seed_repeats_them() -> None:
    arm = with_lease(find_arm("hand_rolled"), 10.0)
    found = blows(arm, 4, random.Random(1))
    for kind in ("pause", "stall"):
        lengths = sorted(blow.lasts for blow in found if blow.kind == kind and blow.lasts)
        for place, length in enumerate(lengths):
            assert 1 + 3.5 * place <= length <= 1 + 3.5 * (place + 1)
        assert len(lengths) == 4
    assert found == blows(arm, 4, random.Random(1))


def test_a_mistake_is_work_taken_from_a_worker_that_lived() -> None:
    found = point()
    assert found.mistakes("pause") == (2, 4)
    assert found.edge("pause") == (1.0, 0.75), "the lease was lost from one lease on"
    assert found.edge("stall") == (None, 1.5)
    assert found.detection is not None
    assert found.detection.median.value == 2.0


def test_a_kill_that_nobody_noticed_is_not_left_out() -> None:
    assert point(taken=None).detection is None
    [row] = rows([point(taken=None)])
    assert row[2] == "never n=4"


def test_the_table_has_a_line_for_each_lease_and_arm() -> None:
    points = [point(lease=5.0), point("temporal+tuned"), point()]
    assert [row[:2] for row in rows(points)] == [
        ("2 s", "temporal+tuned"),
        ("2 s", "hand_rolled"),
        ("5 s", "hand_rolled"),
    ]
    assert rows(points)[1][4:] == (
        "2 of 4 [1.00, 0.75]",
        "0 of 1 [–, 1.50]",
        "120.0",
        "not counted",
    )
    console = Console(record=True, width=100, file=io.StringIO())
    to_terminal(points, console)
    assert "temporal+tuned" in console.export_text()
    assert sum(line.startswith("| ") for line in to_markdown(points).splitlines()) == 1 + 3


def test_the_plot_is_a_picture_with_a_curve_for_each_arm() -> None:
    drawn = to_svg([point(lease=1.0), point(), point("temporal+tuned")])
    assert ElementTree.fromstring(drawn).tag.endswith("svg")


def test_a_lease_without_a_kind_of_spell_leaves_a_gap_in_its_curve() -> None:
    full = point()
    bare = replace(full, lease=5.0, spells=tuple(s for s in full.spells if s.kind == "kill"))
    assert rows([bare])[0][4:6] == ("0 of 0 [–, –]", "0 of 0 [–, –]")
    assert ElementTree.fromstring(to_svg([full, bare])).tag.endswith("svg")


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "arm", ["hand_rolled", pytest.param("temporal+tuned", marks=pytest.mark.slow)]
)
async def test_a_short_sweep_finds_what_a_lease_does(tmp_path: Path, arm: str) -> None:
    [found] = await sweep(arms=[arm], leases=[2.0], rounds=1, seed=1, results=tmp_path, each=1)
    assert {s.kind for s in found.spells} == {"kill", "pause", "stall"}
    assert found.detection is not None
    assert found.detection.median.value >= 1.0, "nobody is missed sooner than half a lease"
    assert found.heartbeats is not None
    assert found.heartbeats > 30, "one every half second, less what a busy machine delays"
    [directory] = (tmp_path / "sweep").iterdir()
    stored = json.loads((directory / "sweep.json").read_text())
    assert stored["points"][0]["spells"][0]["kind"] == "kill"
    assert stored["seed"] == 1
    assert arm in (directory / "sweep.md").read_text()
