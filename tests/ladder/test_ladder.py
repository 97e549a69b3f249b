"""The whole ladder once: every broken form is convicted, no fixed form is.

The broken forms are the planted bugs of the comparison's checks: a check that misses its rung
fails here, and so does one that convicts a form that is right.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from comparison.ladder.main import Climbed, climb
from comparison.ladder.rungs import RUNGS, find_rung
from comparison.ladder.show import lines
from hand_rolled.server import EmbeddedPostgres
from two_workers import BadInput
from two_workers.cli.ladder import ladder

pytestmark = pytest.mark.timeout(
    600
)  # the ladder is climbed in a fixture, on a machine of any speed


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ladder")


@pytest.fixture(scope="module")
async def climbed(postgres: EmbeddedPostgres, results: Path) -> AsyncIterator[dict[int, Climbed]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "DATABASE_URL", postgres.url())
        all_of_them = await climb(RUNGS, results, lambda line: None, trials=1)
        yield {one.rung.number: one for one in all_of_them}


@pytest.mark.parametrize("number", [rung.number for rung in RUNGS])
async def test_the_rung_stands(climbed: dict[int, Climbed], number: int) -> None:
    assert climbed[number].defect is None


@pytest.mark.parametrize("number", [1, 2, 3])
async def test_without_ownership_the_same_work_is_paid_for_twice(
    climbed: dict[int, Climbed], number: int
) -> None:
    [without], [owned] = climbed[number].of("broken"), climbed[number].of("fixed")
    assert without.bill.calls > 0
    assert without.bill.tokens > 0
    assert without.bill.micro_usd > 0
    assert owned.bill.calls == 0


async def test_idempotence_alone_passes_every_check_of_results(climbed: dict[int, Climbed]) -> None:
    [without] = climbed[3].of("broken")
    assert not {"INV-START", "INV-END", "INV-SAME", "INV-KEY"} & set(without.convicted_by)


@pytest.mark.parametrize("number", [4, 6, 8])
async def test_a_run_is_stranded_only_without_the_idea(
    climbed: dict[int, Climbed], number: int
) -> None:
    assert [tried.stranded for tried in climbed[number].of("broken")] == [1]
    assert [tried.stranded for tried in climbed[number].of("fixed")] == [0]


async def test_the_overloaded_door_refuses_only_with_a_limit(climbed: dict[int, Climbed]) -> None:
    assert [tried.refused_starts for tried in climbed[10].of("broken")] == [0]
    assert climbed[10].of("fixed")[0].refused_starts > 0


async def test_the_report_names_every_rung_its_check_and_its_bill(
    climbed: dict[int, Climbed], results: Path
) -> None:
    text = "\n".join(lines(list(climbed.values())))
    for rung in RUNGS:
        assert rung.title in text
        assert rung.breaks in text
    assert "all 10 rungs stand" in text
    kept = json.loads((results / "ladder.json").read_text())
    assert [rung["rung"] for rung in kept] == [rung.number for rung in RUNGS]
    assert all(trial["verdict"]["detail"] for rung in kept for trial in rung["trials"])


def test_an_unknown_rung_is_one_clear_line() -> None:
    with pytest.raises(BadInput, match="no rung 11; there are 1 to 10"):
        find_rung(11)
    outcome = CliRunner().invoke(ladder, ["--rung", "11"])
    assert isinstance(outcome.exception, BadInput)
