"""How a figure is printed: with its n, its interval, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Sequence

from comparison.stats import Summary, needed_for, upper_bound_of_zero

USD = 1_000_000
"""Micro-dollars in a dollar."""


def median(s: Summary | None) -> str:
    """Median and interval. One fault alone has no interval: its runs are not independent."""
    if s is None:
        return "no sample"
    if s.blocks == 1:
        return f"{s.median.value:.2f} s [one fault]"
    return f"{s.median.value:.2f} s [{s.median.low:.2f}, {s.median.high:.2f}]"


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
    """How many runs, from how many faults, and how many were not taken over at all."""
    said = "0" if s is None else f"{s.n} of {s.blocks}"
    return f"{said}, {never} never" if never else said


def band(low_high: tuple[float, float]) -> str:
    """A predicted band."""
    return "{:.2f}–{:.2f} s".format(*low_high)


def bounds(pair: Sequence[int]) -> str:
    """A count between two bounds."""
    return "0" if pair[1] == 0 else f"{pair[0]:,}–{pair[1]:,}"


def dollars(pair: Sequence[int], spent: int) -> str:
    """Money between two bounds, of all that was spent."""
    return f"${pair[0] / USD:.3f}–{pair[1] / USD:.3f} of ${spent / USD:.2f}"


def spread(values: Sequence[float | None]) -> str:
    """Median and largest of a few durations, with their number."""
    times = sorted(value for value in values if value is not None)
    if not values:
        return "no sample"
    if not times:
        return f"none (n={len(values)})"
    return f"{middle(times):.2f} s, at most {times[-1]:.2f} s (n={len(times)})"


def middle(ordered: Sequence[float]) -> float:
    """The median of an ordered sequence."""
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def out_of(count: int, n: int) -> str:
    """A count out of n; a zero with the rate that it rules out."""
    if n == 0:
        return "0 of 0: not put to the test"
    if count == 0:
        return f"0 of {n} (≤ {100 * upper_bound_of_zero(n):.1f} %)"
    return f"{count} of {n}"
