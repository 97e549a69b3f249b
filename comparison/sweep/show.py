"""The sweep as a table and as a plot: three curves over one axis, the lease."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from comparison import cells
from comparison.page.charts import COLOURS
from comparison.sweep.point import SLOW, Point, SpellKind

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEAD = ("lease", "arm", "detection", "predicted", "stopped", "stalled", "beats", "writes")
NOTE = (
    "detection: from SIGKILL to the first call by another worker, median [95 % CI].",
    "predicted: from the settings alone.",
    "stopped, stalled: how many workers that lived, but were slow for 0.1 to 1.5 leases, lost "
    "their run: by SIGSTOP, or by an event loop that stood still. In brackets the shortest spell "
    "that cost the run, and the longest that did not, in leases.",
    "beats: heartbeats in a minute for each run, one run a worker. One of hand_rolled serves all "
    "runs of its worker; one of Temporal serves one step, and Temporal Cloud bills it.",
    "writes: the server's transactions that wrote, in a minute for each run, while its model "
    "thinks: heartbeats, and whatever else each worker does meanwhile, polling included.",
)


def rows(points: Sequence[Point]) -> list[tuple[str, ...]]:
    """The cells, by lease and arm."""
    return [
        (
            f"{point.lease:g} s",
            point.arm,
            _detection(point),
            cells.band(point.predicted),
            *(_mistakes(point, kind) for kind in SLOW),
            cells.count(point.heartbeats),
            cells.count(point.writes),
        )
        for point in sorted(points, key=lambda point: point.lease)
    ]


def _detection(point: Point) -> str:
    kills = sum(spell.kind == "kill" for spell in point.spells)
    unnoticed = kills > 0 and point.detection is None
    return f"{'never' if unnoticed else cells.median(point.detection)} n={kills}"


def _mistakes(point: Point, kind: SpellKind) -> str:
    taken, n = point.mistakes(kind)
    cost, kept = (f"{edge:.2f}" if edge is not None else "–" for edge in point.edge(kind))
    return f"{taken} of {n} [{cost}, {kept}]"


def to_terminal(points: Sequence[Point], console: Console) -> None:
    """The table and what its columns mean."""
    table = Table(title="A longer lease: what it buys and what it costs", title_justify="left")
    for name in HEAD:
        table.add_column(name, no_wrap=name in ("lease", "arm"), overflow="fold")
    for row in rows(points):
        table.add_row(*map(Text, row))
    console.print()
    console.print(table)
    for line in NOTE:
        console.print(Text(f"  {line}", style="dim"))


def to_markdown(points: Sequence[Point]) -> str:
    """The same as a file to keep."""
    lines = ["# A longer lease: what it buys and what it costs", ""]
    lines += [f"| {' | '.join(HEAD)} |", "|---" * len(HEAD) + "|"]
    lines += [f"| {' | '.join(row)} |" for row in rows(points)]
    lines += ["", *(f"- {line}" for line in NOTE), "", "![the three curves](sweep.svg)", ""]
    return "\n".join(lines)


def to_svg(points: Sequence[Point]) -> str:
    """Detection, mistakes and load over the lease; a dot for every kill."""
    # Not at the top: the command line would wait a second for it, whatever it does.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 9), layout="constrained")
    detection, mistakes, load = figure.subplots(3, 1, sharex=True)
    for colour, arm in zip(COLOURS, dict.fromkeys(point.arm for point in points), strict=False):
        mine = sorted((p for p in points if p.arm == arm), key=lambda p: p.lease)
        _draw_detection(detection, mine, colour)
        _draw_mistakes(mistakes, mine, colour)
        load.plot(*_known(mine, lambda p: p.heartbeats), "o-", color=colour, label=f"{arm}, beats")
        load.plot(*_known(mine, lambda p: p.writes), "s--", color=colour, label=f"{arm}, writes")
    detection.set(yscale="log", ylabel="detection of a kill, s")
    mistakes.set(ylim=(-0.05, 1.05), ylabel="share of spells of 0.1–1.5 leases\nthat cost the run")
    load.set(yscale="log", xscale="log", ylabel="a minute, for each run", xlabel="lease, s")
    ticks = sorted({point.lease for point in points})
    load.set_xticks(ticks, [f"{tick:g}" for tick in ticks], minor=False)
    load.set_xticks([], minor=True)
    for axes in (detection, load):
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:g}")
    for axes in (detection, mistakes, load):
        axes.grid(visible=True, color="#e2e8f0")
        axes.legend(fontsize=8)
    drawn = io.StringIO()
    figure.savefig(drawn, format="svg", metadata={"Date": None})
    return drawn.getvalue()


def _draw_detection(axes: Axes, mine: Sequence[Point], colour: str) -> None:
    leases = [point.lease for point in mine]
    low, high = zip(*(point.predicted for point in mine), strict=True)
    axes.fill_between(leases, low, high, color=colour, alpha=0.12, linewidth=0)
    for point in mine:
        taken = [s.taken for s in point.spells if s.kind == "kill" and s.taken is not None]
        axes.plot([point.lease] * len(taken), taken, "o", color=colour, markersize=4)
    axes.plot(*_known(mine, _median), "-", color=colour, label=f"{mine[0].arm} (shaded: predicted)")


def _draw_mistakes(axes: Axes, mine: Sequence[Point], colour: str) -> None:
    for kind, style in zip(SLOW, ("-", "--"), strict=True):
        shares = _known(mine, partial(_share, kind))
        axes.plot(*shares, style, color=colour, label=f"{mine[0].arm}, {kind}")


def _share(kind: SpellKind, point: Point) -> float | None:
    taken, n = point.mistakes(kind)
    return taken / n if n else None


def _median(point: Point) -> float | None:
    return None if point.detection is None else point.detection.median.value


def _known(
    points: Sequence[Point], value: Callable[[Point], float | None]
) -> tuple[list[float], list[float]]:
    pairs = [(p.lease, v) for p in points if (v := value(p)) is not None]
    return [lease for lease, _ in pairs], [v for _, v in pairs]
