"""What the report says of the machine that its arms met, and what it does not call a difference."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from comparison.reading import ALIKE, RULE, doubt, terms, warnings
from comparison.render import to_markdown, to_terminal
from comparison.report import ArmResult, rows
from comparison.results import judged
from comparison.sentences import differences

from .planted import Planted, S, fault
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
        ((0.95, 0.96), 6, "some process waited for a CPU in 95% of the time on hand_rolled and"),
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
        assert "so much that how many waited" not in shown
        assert shown.index(RULE) < shown.index("Side by side")


def test_arms_that_were_starved_alike_are_warned_of_too() -> None:
    starved, rule = warnings(arms((0.95, 0.96), blocks=6))
    assert starved.startswith("Some process waited for a CPU in more than 90% of the time on hand")
    assert rule == RULE


def test_one_arm_alone_is_compared_with_nothing() -> None:
    assert warnings(arms((0.9, 0.9), blocks=1)[:1]) == []


def test_who_never_tried_a_late_write_is_not_said_to_have_had_one_refused() -> None:
    stopped, asked = Planted(), Planted()
    asked.write("run-1", "1.0", 1, "C", at=13.1)
    case = stopped.case("hand_rolled")
    said = " ".join(terms([judged([case])]))
    assert "No late write was tried on hand_rolled: its workers trust a lease by their own" in said
    assert "No late write" not in " ".join(terms([judged([asked.case("hand_rolled")])]))


def test_the_orphans_of_the_table_and_of_its_verdict_add_up() -> None:
    planted = Planted()
    planted.faults[0] = fault(1, "stall", "A", "run-0/1.0", at=2.0, resumed=6.0)
    result = judged([planted.case()])
    [found] = [row for row in rows([result]) if row.label.startswith("orphaned:")]
    [verdict] = [v for v in result.verdicts if v.invariant == "INV-ORPHAN"]
    assert found.cells == ("1 + 1 = 2",)
    assert verdict.tested == 1
