"""The evidence can be made anew: scenarios on real engines, guards removed for real."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from comparison.break_one import GUARDS, convict, find_guard
from comparison.mapping.record import convicts
from comparison.mapping.recording import Recording, stored
from comparison.mapping.scenarios import SCENARIOS, find_scenario
from comparison.mapping.scenarios.run import Servers, run
from tests.cli.command import two_workers

QUICK = ("pause", "budget")
"""Scenarios for every test run; `slow` carries out the others."""
QUICK_GUARDS = ("budget", "boundary")


@pytest.fixture(scope="module")
async def servers() -> AsyncIterator[Servers]:
    async with Servers.open() as running:
        yield running


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in SCENARIOS]
)
async def test_a_scenario_shows_what_it_should(servers: Servers, name: str, tmp_path: Path) -> None:
    recording = await run(find_scenario(name), servers)
    for side in recording.sides:
        assert side.checks, side.engine
        assert side.failed == [], side.engine
    kept = Recording.model_validate_json(recording.write(tmp_path).read_text())
    assert kept == recording


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK_GUARDS else pytest.mark.slow) for n in GUARDS]
)
async def test_without_a_guard_its_check_convicts(name: str) -> None:
    guard = find_guard(name)
    assert convicts(await convict(guard), guard)


@pytest.mark.slow
def test_a_concept_is_shown_from_a_run_made_now() -> None:
    before = stored("budget")
    shown = two_workers("mapping", "run-cost", "--run")
    assert shown.returncode == 0, shown.stderr
    assert "run on " in shown.stdout
    assert "holds INV-BUDGET" in shown.stdout
    assert stored("budget") == before, "the stored evidence stays as it was"


def test_break_shows_the_line_and_the_conviction() -> None:
    broken = two_workers("break", "budget")
    assert broken.returncode == 0, broken.stderr
    assert "-      AND r.cost + r.reserved" in broken.stdout
    assert "convicted by INV-BUDGET" in broken.stdout


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("mapping", "clam"), "unknown concept 'clam'; known: ready, claim"),
        (("break", "fense"), "unknown guard 'fense'; known: claim, fence"),
        (("quiz", "nothing"), "no question about 'nothing'"),
        (("explain", "nothing"), "nothing to explain about 'nothing'"),
    ],
)
def test_a_wrong_name_is_one_clear_line(arguments: tuple[str, ...], problem: str) -> None:
    found = two_workers(*arguments)
    assert found.returncode == 2
    assert problem in found.stderr
    assert found.stderr.count("\n") == 1
