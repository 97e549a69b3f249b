"""Two pictures: rates by contender, and how the cost grows."""

from __future__ import annotations

from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from benchmarks.results import Report

matplotlib.use("Agg")


def draw_rates(report: Report, path: Path) -> None:
    """One row of points per contender, a point per round, for each contest."""
    if not report.rounds:
        return
    figure = Figure(figsize=(9, 1.9 * len(report.rounds)), layout="constrained")
    for axes, contest in zip(
        figure.subplots(len(report.rounds), squeeze=False)[:, 0], report.rounds, strict=True
    ):
        names = list(contest.rates)[::-1]
        for place, name in enumerate(names):
            axes.plot(contest.rates[name], [place] * len(contest.rates[name]), "o", alpha=0.6)
        axes.set_yticks(range(len(names)), names)
        axes.set_xscale("log")
        axes.set_title(contest.contest, loc="left", fontsize=10)
        axes.set_xlabel(contest.unit)
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
