"""Three pictures: rates by contender, durations by contender, and how the cost grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from benchmarks.results import Report

matplotlib.use("Agg")


def draw_rates(report: Report, path: Path) -> None:
    """One row of points per contender, a point per round, for each contest."""
    _draw_rows(
        {it.contest: it.rates for it in report.rounds}, [it.unit for it in report.rounds], path
    )


def draw_durations(report: Report, path: Path) -> None:
    """One row of points per contender, a point per sample, for each row about ownership."""
    groups: dict[str, dict[str, Sequence[float]]] = {}
    for title, seconds in report.samples.items():
        row, _, contender = title.partition(": ")
        groups.setdefault(row, {})[contender] = seconds
    _draw_rows(groups, ["seconds"] * len(groups), path)


def _draw_rows(
    groups: Mapping[str, Mapping[str, Sequence[float]]], units: Sequence[str], path: Path
) -> None:
    if not groups:
        return
    heights = [0.8 + 0.25 * len(rows) for rows in groups.values()]
    figure = Figure(figsize=(9, sum(heights)), layout="constrained")
    every = figure.subplots(len(groups), squeeze=False, height_ratios=heights)[:, 0]
    for axes, (title, rows), unit in zip(every, groups.items(), units, strict=True):
        names = list(rows)[::-1]
        for place, name in enumerate(names):
            axes.plot(rows[name], [place] * len(rows[name]), "o", alpha=0.6)
        axes.set_yticks(range(len(names)), names)
        axes.set_xscale("log")
        axes.set_title(title, loc="left", fontsize=10)
        axes.set_xlabel(unit)
        axes.grid(axis="x", which="both", alpha=0.3)
    figure.savefig(path, dpi=120)


def draw_growth(report: Report, path: Path) -> None:
    """A curve for each kind of growth."""
    if not report.growth:
        return
    figure = Figure(figsize=(4 * len(report.growth), 3.4), layout="constrained")
    for axes, (title, points) in zip(
        figure.subplots(1, len(report.growth), squeeze=False)[0], report.growth.items(), strict=True
    ):
        what, _, by = title.rpartition(", by ")
        axes.plot([x for x, _ in points], [y for _, y in points], "o-")
        axes.set_xscale("log")
        axes.set_ylim(bottom=0)
        axes.set_xlabel(by)
        axes.set_ylabel(what)
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)
