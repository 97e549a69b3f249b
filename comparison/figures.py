"""A figure of the table: the words that a reader sees, and the numbers that a spreadsheet wants.

`cells` finds the words. The numbers are in the unit of the words (seconds, calls, dollars), and
what a figure does not have stays empty: a count has no interval, a sample too small no p95.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from comparison import cells
from comparison.stats import Interval, Summary, upper_bound_of_zero


@dataclass(frozen=True)
class Figure:
    """One cell. `low` and `high` are an interval, or the two bounds of a cost; `n` its sample."""

    text: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None


@dataclass(frozen=True)
class Row:
    """One line of the side-by-side table: a cell for each arm."""

    section: str
    label: str
    figures: tuple[Figure, ...]

    @property
    def cells(self) -> tuple[str, ...]:
        """What is shown."""
        return tuple(figure.text for figure in self.figures)


def median(s: Summary | None, never: Sequence[float] = ()) -> Figure:
    """Median and interval; of one fault alone there is no interval.

    `never` are the seconds for which those were watched that were not over.
    """
    if s is None and never:
        return Figure(cells.never(never), n=len(never))
    if s is None:
        return Figure(cells.median(s))
    return _interval(cells.median(s), s.median, s.n, bounded=s.blocks > 1)


def p95(s: Summary | None) -> Figure:
    """The 95th percentile where the sample can carry it."""
    if s is None or s.p95 is None:
        return Figure(cells.p95(s), n=None if s is None else s.n)
    return _interval(cells.p95(s), s.p95, s.n)


def longest(s: Summary | None) -> Figure:
    """The maximum."""
    return Figure(cells.longest(s)) if s is None else Figure(cells.longest(s), s.maximum, n=s.n)


def sizes(s: Summary | None, never: int) -> Figure:
    """How many runs."""
    n = never if s is None else s.n
    return Figure(cells.sizes(s, never), n, n=n)


def band(low_high: tuple[float, float]) -> Figure:
    """A predicted band."""
    return Figure(cells.band(low_high), low=low_high[0], high=low_high[1])


def bounds(pair: Sequence[int]) -> Figure:
    """A count between two bounds."""
    return Figure(cells.bounds(pair), low=pair[0], high=pair[1])


def dollars(pair: Sequence[int], spent: int) -> Figure:
    """Money between two bounds, beside what the runs that were hit cost."""
    low, high = (bound / cells.USD for bound in pair)
    return Figure(cells.dollars(pair, spent), low=low, high=high)


def spread(values: Sequence[float | None], none: str = "none") -> Figure:
    """Median and largest of a few durations; `none` is said where there is not one."""
    times = [value for value in values if value is not None]
    middle = statistics.median(times) if times else None
    return Figure(cells.spread(values, none), middle, high=max(times, default=None), n=len(times))


def milliseconds(values: Sequence[float]) -> Figure:
    """Median, smallest and largest, in milliseconds."""
    if not values:
        return Figure(cells.milliseconds(values), n=0)
    low, middle, high = (1000 * f(values) for f in (min, statistics.median, max))
    return Figure(cells.milliseconds(values), middle, low, high, len(values))


def each(pair: tuple[float, float] | None) -> Figure:
    """A count for each run; that for each step is in the words."""
    return Figure(cells.each(pair), None if pair is None else pair[0])


def kilobytes(pair: tuple[float, float] | None) -> Figure:
    """Kilobytes for each run; those for each step are in the words."""
    return Figure(cells.kilobytes(pair), None if pair is None else pair[0] / 1000)


def count(value: float | None) -> Figure:
    """A count for each run."""
    return Figure(cells.count(value), value)


def number(value: int) -> Figure:
    """A count."""
    return Figure(str(value), value)


def ratio(part: int, whole: int) -> Figure:
    """A rate with what it is made of."""
    return Figure(cells.ratio(part, whole), part / whole if whole else None, n=whole)


def duration(value: float | None) -> Figure:
    """One duration."""
    return Figure(cells.duration(value), value)


def out_of(found: int, n: int) -> Figure:
    """A count out of n; a zero has as its upper bound the count that it rules out."""
    high = n * upper_bound_of_zero(n) if n and not found else None
    return Figure(cells.out_of(found, n), found, high=high, n=n)


def _interval(text: str, found: Interval, n: int, *, bounded: bool = True) -> Figure:
    """What is not finite was never seen, and stays empty."""
    low, high = (found.low, found.high) if bounded else (None, None)
    value, low, high = (
        edge if edge is not None and math.isfinite(edge) else None
        for edge in (found.value, low, high)
    )
    return Figure(text, value, low, high, n)
