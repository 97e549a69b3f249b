"""The report as data, once, and rendered twice: for the terminal and as Markdown.

Verdicts come first, then the table side by side, then what the difference is, then what this does
not show. A figure has its n; an interval where it has one; "n too small" where the sample cannot
carry a claim; an upper bound where the count is zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from comparison.arms import Arm, find_arm
from comparison.measures import CAUSES, Measures
from comparison.scene import Paid
from comparison.stats import Summary, needed_for, upper_bound_of_zero
from comparison.verdicts import Verdict

USD = 1_000_000
SECTIONS = {
    "kill": "Recovery after SIGKILL",
    "pause": "Takeover after SIGSTOP",
    "silence": "Takeover after a silent network",
}


@dataclass(frozen=True)
class ArmResult:
    """One arm, judged and measured."""

    arm: str
    verdicts: tuple[Verdict, ...]
    measures: Measures
    server: dict[str, str]


@dataclass(frozen=True)
class Row:
    """One line of the side-by-side table: a cell for each arm."""

    section: str
    label: str
    cells: tuple[str, ...]


def rows(results: Sequence[ArmResult]) -> list[Row]:
    """The table, in the order in which a reader should look at it."""
    found: list[Row] = []

    def row(section: str, label: str, cells: Sequence[str]) -> None:
        found.append(Row(section, label, tuple(cells)))

    measures = [result.measures for result in results]
    arms = [find_arm(result.arm) for result in results]
    for kind, section in SECTIONS.items():
        if not any(m.takeover[kind] for m in measures):
            continue
        summaries = [m.takeover[kind] for m in measures]
        row(section, "taken over: median [95 % CI]", [_median(s) for s in summaries])
        row(section, "longest", [_longest(s) for s in summaries])
        row(section, "p95", [_p95(s) for s in summaries])
        row(section, "runs, of faults", [_sizes(s) for s in summaries])
        row(section, "predicted from the settings", [_band(arm, kind) for arm in arms])
        row(section, "inside of that", ["{} of {}".format(*m.in_band[kind]) for m in measures])
        if kind == "kill":
            row(
                section,
                "first new step: median [95 % CI]",
                [_median(m.productive) for m in measures],
            )
    for kind in ("model", "tool"):
        row(
            "Paid twice",
            f"duplicate {kind} calls",
            [str(m.duplicates.count(kind)) for m in measures],
        )
    for cause in CAUSES:
        counts = [sum(m.duplicates.by_cause[cause].values()) for m in measures]
        if any(counts) or cause == "replayed though recorded":
            row("Paid twice", f"  {cause}", [str(count) for count in counts])
    row("Paid twice", "tokens: answered–begun", [_bounds(m.duplicates.tokens) for m in measures])
    row("Paid twice", "dollars: answered–begun", [_dollars(m) for m in measures])
    row("Paid twice", "calls per step needed", [_amplification(m) for m in measures])
    row("Run time", "longer than fault-free: median", [_median(m.penalty) for m in measures])
    for case in ("running", "pending", "orphan"):
        mine = [[c for c in m.cancellations if c.case == case] for m in measures]
        row(
            f"Cancel ({case})", "acknowledged", [_spread([c.acknowledged for c in x]) for x in mine]
        )
        row(f"Cancel ({case})", "run ended", [_spread([c.ended for c in x]) for x in mine])
        row(
            f"Cancel ({case})",
            "last call begun",
            [_spread([c.last_begin for c in x]) for x in mine],
        )
        row(f"Cancel ({case})", "last call ended", [_spread([c.last_end for c in x]) for x in mine])
    zombies = [m.zombies for m in measures]
    row("Zombies", "back after a takeover", [str(z.spared) for z in zombies])
    row("Zombies", "calls made", [str(z.calls_made) for z in zombies])
    row("Zombies", "  refused by the world", [str(z.calls_refused) for z in zombies])
    row("Zombies", "writes tried", [str(z.writes_tried) for z in zombies])
    row(
        "Zombies",
        "  accepted by the engine",
        [_of(z.writes_accepted, z.writes_tried) for z in zombies],
    )
    row("Runs", "started", [str(m.runs_started) for m in measures])
    row("Runs", "lost", [_of(m.runs_lost, m.runs_started) for m in measures])
    takeovers = [_takeovers(result) for result in results]
    row(
        "Runs",
        "taken from somebody left alone",
        [_of(m.false_takeovers, n) for m, n in zip(measures, takeovers, strict=True)],
    )
    return found


def differences(results: Sequence[ArmResult]) -> list[str]:
    """Who came out ahead at what, for each pair of arms of different engines: both ways."""
    said: list[str] = []
    for i, left in enumerate(results):
        for right in results[i + 1 :]:
            if find_arm(left.arm).engine != find_arm(right.arm).engine:
                said += _compared(left, right)
    return said


def _compared(left: ArmResult, right: ArmResult) -> list[str]:
    a, b = left.measures, right.measures
    said = []
    for label, one, other in (
        ("taken over after a kill", a.takeover["kill"], b.takeover["kill"]),
        ("taken over after a pause", a.takeover["pause"], b.takeover["pause"]),
        ("taken over after a silence", a.takeover["silence"], b.takeover["silence"]),
        ("first new step after a kill", a.productive, b.productive),
    ):
        if one is not None and other is not None:
            said.append(f"{label}: {_ahead(left.arm, one, right.arm, other)}")
    for label, x, y in (
        ("duplicate calls", _per_call(a), _per_call(b)),
        (
            "zombie calls that reached the outside",
            float(a.zombies.calls_made),
            float(b.zombies.calls_made),
        ),
        ("median time from a cancel request to the end of a running run", _ended(a), _ended(b)),
    ):
        if x == y:
            said.append(f"{label}: no difference")
        else:
            winner = left.arm if x < y else right.arm
            said.append(f"{label}: fewer or shorter on {winner} ({x:.3g} against {y:.3g})")
    return said


def _ahead(left: str, one: Summary, right: str, other: Summary) -> str:
    a, b = one.median, other.median
    if a.low <= b.high and b.low <= a.high:
        return f"no difference shown ({left} {a.value:.2f} s, {right} {b.value:.2f} s)"
    winner, less = (left, b.value - a.value) if a.value < b.value else (right, a.value - b.value)
    return f"{winner} by {less:.2f} s of the medians; the intervals do not overlap"


def _per_call(m: Measures) -> float:
    return m.duplicates.count("model") + m.duplicates.count("tool") + 0.0


def _ended(m: Measures) -> float:
    times = sorted(c.ended for c in m.cancellations if c.case == "running" and c.ended is not None)
    return times[len(times) // 2] if times else float("nan")


# Cells.


def _median(s: Summary | None) -> str:
    if s is None:
        return "no sample"
    if s.blocks == 1:
        return f"{s.median.value:.2f} s [one fault]"
    return f"{s.median.value:.2f} s [{s.median.low:.2f}, {s.median.high:.2f}]"


def _longest(s: Summary | None) -> str:
    return "–" if s is None else f"{s.maximum:.2f} s"


def _p95(s: Summary | None) -> str:
    if s is None:
        return "–"
    if s.p95 is None:
        return f"n too small ({s.n} < {needed_for(0.95)})"
    return f"{s.p95.value:.2f} s [{s.p95.low:.2f}, {s.p95.high:.2f}]"


def _sizes(s: Summary | None) -> str:
    return "0" if s is None else f"{s.n} of {s.blocks}"


def _band(arm: Arm, kind: str) -> str:
    return "{:.2f}–{:.2f} s".format(*arm.predict(kind))


def _bounds(pair: Sequence[int]) -> str:
    return "0" if pair[1] == 0 else f"{pair[0]:,}–{pair[1]:,}"


def _dollars(m: Measures) -> str:
    low, high = (cost / USD for cost in m.duplicates.micro_usd)
    return f"${low:.3f}–{high:.3f} of ${m.duplicates.micro_usd_spent / USD:.2f}"


def _amplification(m: Measures) -> str:
    return f"{m.duplicates.calls / max(m.duplicates.distinct, 1):.4f}"


def _spread(values: Sequence[float | None]) -> str:
    """Median and largest of a few durations, with their number."""
    times = sorted(value for value in values if value is not None)
    if not values:
        return "no sample"
    if not times:
        return f"none (n={len(values)})"
    middle = times[len(times) // 2] if len(times) % 2 else sum(times[len(times) // 2 - 1 :][:2]) / 2
    return f"{middle:.2f} s, at most {times[-1]:.2f} s (n={len(times)})"


def _of(count: int, n: int) -> str:
    """A count out of n; a zero with the rate that it rules out."""
    if n == 0:
        return "0 of 0: not put to the test"
    if count == 0:
        return f"0 of {n} (≤ {100 * upper_bound_of_zero(n):.1f} %)"
    return f"{count} of {n}"


def _takeovers(result: ArmResult) -> int:
    return next(v.times for v in result.verdicts if v.invariant == "INV-LEASE")


# Words.


def opening(paid: Paid) -> str:
    """The first scene in three sentences."""
    extra = (paid.micro_usd - paid.micro_usd_needed) / USD
    return (
        f"SELECT then UPDATE, two worker processes, one investigation: {paid.workers} workers "
        f"carried it out, and {paid.model_calls} model calls were paid where "
        f"{paid.model_calls_needed} were needed. That is {paid.tokens:,} tokens instead of "
        f"{paid.tokens_needed:,}, ${paid.micro_usd / USD:.4f} instead of "
        f"${paid.micro_usd_needed / USD:.4f}: ${extra:.4f} for nothing, on one investigation. "
        "Both reports are right; nothing but the bill says that anything went wrong."
    )


NOT_SHOWN = (
    "Throughput: the two servers do not keep their data alike (PostgreSQL with fsync; the Temporal "
    "dev server's SQLite), so no rates are compared.",
    "Behaviour at load: recovery is measured with free capacity left on the surviving workers.",
    "Partitions, server restarts, clock skew and stalls of the event loop: not part of this run.",
    "More than one machine: all processes share one host and its clock.",
    "Rare events: a count of zero rules out only what its upper bound says.",
    "INV-TRUST is not judged: from outside, a call sent too late cannot be told from one that was "
    "frozen on its way. Zombie calls are counted instead.",
    "The same schedule again: a seed repeats the experiment, not the interleaving.",
    "The four figures that were chosen beforehand are takeover after a kill, duplicate calls, "
    "zombie writes accepted and cancel to last call; all others are exploratory.",
)
