"""How a figure is printed: with its n, its interval, or the reason why there is none."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from comparison.stats import Summary, needed_for, upper_bound_of_zero

USD = 1_000_000
"""Micro-dollars in a dollar."""


def median(s: Summary | None) -> str:
    """Median and interval. One fault alone has no interval: its runs are not independent."""
    if s is None:
        return "no sample"
    if s.blocks == 1:
        return f"{seconds(s.median.value)} [one fault]"
    return f"{seconds(s.median.value)} [{s.median.low:.2f}, {s.median.high:.2f}]"


def seconds(value: float) -> str:
    """A duration; one that the record did not see the end of is none."""
    return f"{value:.2f} s" if math.isfinite(value) else "never in half of the cases"


def never(watched: Sequence[float]) -> str:
    """Waits of which none was over in the seconds for which each was watched."""
    low, high = f"{min(watched):.0f}", f"{max(watched):.0f}"
    return f"never in the {low if low == high else f'{low} to {high}'} s watched"


def longest(s: Summary | None) -> str:
    """The maximum."""
    return "–" if s is None else f"{s.maximum:.2f} s"


def p95(s: Summary | None) -> str:
    """The 95th percentile where the sample can carry it."""
    if s is None:
        return "–"
    if s.p95 is None:
        return f"n too small ({s.n} < {needed_for(0.95)})"
    return f"{s.p95.value:.2f} s [{s.p95.low:.2f}, {s.p95.high:.2f}]"


def sizes(s: Summary | None, never: int) -> str:
    """How many runs, from how many faults, and how many of them were not taken over at all."""
    said = str(never) if s is None else f"{s.n} of {s.blocks}"
    return f"{said}, {never} never" if never else said


def band(low_high: tuple[float, float]) -> str:
    """A predicted band."""
    return "{:.2f}–{:.2f} s".format(*low_high)


def bounds(pair: Sequence[int]) -> str:
    """A count between two bounds."""
    return "0" if pair[1] == 0 else f"{pair[0]:,}–{pair[1]:,}"


def dollars(pair: Sequence[int], spent: int) -> str:
    """Money between two bounds, beside all that the same runs cost."""
    return f"${pair[0] / USD:.3f}–{pair[1] / USD:.3f} of ${spent / USD:.2f}"


def spread(values: Sequence[float | None], none: str = "none") -> str:
    """Median and largest of a few durations, with their number; of how many, if some are none.

    `none` says what it means that not one of them is a duration.
    """
    times = sorted(value for value in values if value is not None)
    if not values:
        return "no sample"
    if not times:
        return f"{none} (n={len(values)})"
    n = f"{len(times)}" if len(times) == len(values) else f"{len(times)} of {len(values)}"
    return f"{statistics.median(times):.2f} s, at most {times[-1]:.2f} s (n={n})"


def each(pair: tuple[float, float] | None) -> str:
    """A count for each run and for each step."""
    return "not counted" if pair is None else "{:,.1f} a run, {:,.2f} a step".format(*pair)


def kilobytes(pair: tuple[float, float] | None) -> str:
    """Bytes for each run and for each step, in kilobytes."""
    return (
        "not counted"
        if pair is None
        else "{:,.1f} kB a run, {:,.2f} kB a step".format(*(value / 1000 for value in pair))
    )


def count(value: float | None) -> str:
    """A count for each run."""
    return "not counted" if value is None else f"{value:,.1f}"


def ratio(part: int, whole: int) -> str:
    """A rate with what it is made of."""
    return f"{part / whole:.2f} ({part} over {whole})" if whole else "no sample"


def duration(value: float | None) -> str:
    """One duration."""
    return "no sample" if value is None else f"{value:.2f} s"


def p(value: float) -> str:
    """A p-value."""
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def milliseconds(values: Sequence[float]) -> str:
    """Median of a few short durations, with the smallest and the largest."""
    if not values:
        return "no sample"
    low, mid, high = min(values), statistics.median(values), max(values)
    return f"{1000 * mid:.0f} ms, {1000 * low:.0f} to {1000 * high:.0f} (n={len(values)})"


def out_of(count: int, n: int) -> str:
    """A count out of n; a zero with the rate that it rules out."""
    if n == 0:
        return "0 of 0: not put to the test"
    if count == 0:
        return f"0 of {n} (≤ {100 * upper_bound_of_zero(n):.1f} %)"
    return f"{count} of {n}"
