"""What the report says of the machine that its arms met, and what it does not call a difference."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from comparison.reading import ALIKE, RULE, doubt, warnings
from comparison.render import to_markdown, to_terminal
from comparison.report import ArmResult
from comparison.results import judged
from comparison.sentences import differences

from .planted import Planted, S
from .test_report import ENVIRONMENT, PAID, Report


def arms(pressures: tuple[float | None, float | None], *, blocks: int) -> list[ArmResult]:
    """Two arms of six faults of a kind, of which the second lets every killed run wait."""
    late = Planted()
    late.records = late.records[:8]  # up to the call that A's death aborted
    late.call("run-0", "1.0", 2, "B", at=11.0, ends=11.1)
    late.ends["run-1"] = late.ends["run-1"].model_copy(update={"t_ns": 19 * S})
    quick, slow = Planted().case("hand_rolled"), late.case("temporal+tuned")
    return [
        replace(judged([case] * 6), cpu_pressure=pressure, blocks=blocks)
        for case, pressure in zip((quick, slow), pressures, strict=True)
    ]


def test_between_machines_equally_busy_a_difference_is_shown() -> None:
    results = arms((0.5, 0.5 + ALIKE / 2), blocks=6)
    assert warnings(results) == []
    assert ", a difference is shown." in differences(results)[0]
    assert "not read as a difference" not in " ".join(differences(results))


@pytest.mark.parametrize(
    ("pressures", "blocks", "why"),
    [
        ((0.16, 0.75), 6, "some process waited for a CPU in 16% of the time on hand_rolled and"),
        ((None, 0.5), 6, "how busy the machine was is not known"),
        ((0.5, 0.5), 1, "there is one block only"),
    ],
)
def test_otherwise_none_is_whatever_the_tests_say(
    pressures: tuple[float | None, float | None], blocks: int, why: str
) -> None:
    results = arms(pressures, blocks=blocks)
    said = differences(results)
    assert why in str(doubt(*results))
    assert "a difference is shown" not in " ".join(said)
    apart = [line for line in said if "do not overlap" in line or "p = 0.031" in line]
    assert apart
    assert all(why in line for line in apart)


def test_the_warning_stands_over_the_table_with_its_rule() -> None:
    results = arms((0.16, 0.75), blocks=1)
    report = Report(7, ENVIRONMENT, PAID, results, 120.0)
    console = Console(record=True, width=100, file=io.StringIO())
    to_terminal(report, console)
    for text in (console.export_text(), to_markdown(report)):
        shown = " ".join(text.split())
        warned = shown.index("16% on hand_rolled, 75% on temporal+tuned")
        assert warned < shown.index("One block only for hand_rolled, temporal+tuned")
        assert shown.index(RULE) < shown.index("Side by side")


def test_one_arm_alone_is_compared_with_nothing() -> None:
    assert warnings(arms((0.9, 0.9), blocks=1)[:1]) == []
