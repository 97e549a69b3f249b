"""Statistics for small samples: intervals always, and no figure that the sample cannot carry.

Samples that come from one fault are correlated (a kill orphans several runs at once), so medians
are bootstrapped over *blocks*: whole faults are resampled, never single runs. A wait that was not
over when the record ended is not dropped, which would flatter whoever never came: it is *censored*,
and the median is that of Kaplan and Meier, which knows only that it lasted at least so long.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from scipy import stats

CONFIDENCE = 0.95
RESAMPLES = 4_000
FEWEST = 4
"""Waits on each side for a log-rank test: of two times three, 1 order in 10 is as lopsided."""


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Wait:
    """A duration in seconds; not `over` when it was still going on as the record ended."""

    seconds: float
    over: bool = True


@dataclass(frozen=True)
class Summary:
    """A sample of waits in seconds, from `blocks` independent faults.

    `n` counts all of them, also those that were never over; so many are `censored`. The maximum is
    that of the others.
    """

    n: int
    blocks: int
    censored: int
    median: Interval
    maximum: float
    p95: Interval | None


def summarise(blocks: Sequence[Sequence[Wait]], *, seed: int = 0) -> Summary | None:
    """Median, maximum and, from 59 samples on, p95 with its interval; None if no wait was over.

    With fewer than 59 samples not even the largest one bounds the p95 from above with 95 %
    confidence (1 − 0.95^n), so none is given.
    """
    return _summarise(tuple(tuple(block) for block in blocks if block), seed)


@lru_cache(maxsize=1_000)  # a report shows each figure in five forms; it is resampled once
def _summarise(filled: tuple[tuple[Wait, ...], ...], seed: int) -> Summary | None:
    waits = [wait for block in filled for wait in block]
    over = [wait.seconds for wait in waits if wait.over]
    if not over:
        return None
    values = [*over, *(math.inf for wait in waits if not wait.over)]
    return Summary(
        n=len(waits),
        blocks=len(filled),
        censored=len(waits) - len(over),
        median=median_over_blocks(filled, seed=seed),
        maximum=max(over),
        p95=quantile_interval(values, 0.95) if len(values) >= needed_for(0.95) else None,
    )


def median_over_blocks(blocks: Sequence[Sequence[Wait]], *, seed: int) -> Interval:
    """The median of all waits; its interval by the percentile bootstrap over blocks."""
    whole = median([wait for block in blocks for wait in block])
    if len(blocks) == 1:
        return Interval(whole, -math.inf, math.inf)
    chance = np.random.default_rng(seed)
    picks = chance.integers(len(blocks), size=(RESAMPLES, len(blocks)))
    medians = sorted(median([w for i in pick for w in blocks[i]]) for pick in picks)
    cut = round(RESAMPLES * (1 - CONFIDENCE) / 2)
    return Interval(whole, medians[cut], medians[-cut - 1])


def median(waits: Sequence[Wait]) -> float:
    """The median; infinite when fewer than half of the waits were over in time."""
    if all(wait.over for wait in waits):
        return float(np.median([wait.seconds for wait in waits]))
    still_waiting = stats.ecdf(_censored(waits)).sf
    reached = still_waiting.quantiles[still_waiting.probabilities <= 0.5]
    return float(reached[0]) if len(reached) else math.inf


def log_rank(one: Sequence[Wait], other: Sequence[Wait]) -> float | None:
    """The probability of a difference as large as this one if both waited alike (two-sided).

    One wait for each fault, or it claims more independence than there is. None if all are equal, or
    for fewer than four on a side, of which not even the most lopsided order is rarer than 5 %.
    """
    if min(len(one), len(other)) < FEWEST or len({*one, *other}) == 1:
        return None
    return float(stats.logrank(_censored(one), _censored(other)).pvalue)


def sign_test(differences: Sequence[float]) -> float:
    """The probability of so lopsided signs if either were as likely (two-sided); ties left out."""
    more, less = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
    return float(stats.binomtest(more, more + less).pvalue) if more + less else 1.0


def _censored(waits: Sequence[Wait]) -> stats.CensoredData:
    return stats.CensoredData(
        uncensored=[wait.seconds for wait in waits if wait.over],
        right=[wait.seconds for wait in waits if not wait.over],
    )


def quantile_interval(values: Sequence[float], q: float) -> Interval:
    """A quantile and its interval by order statistics: no assumption about the distribution."""
    ordered, n = sorted(values), len(values)
    tail = (1 - CONFIDENCE) / 2
    # How many of n values lie below the true quantile is binomial, whatever their distribution.
    low, high = (int(stats.binom.ppf(p, n, q)) for p in (tail, 1 - tail))
    # Nothing can be interpolated between waits that were never over.
    method: Literal["linear", "lower"] = "linear" if math.isfinite(ordered[-1]) else "lower"
    return Interval(
        float(np.quantile(ordered, q, method=method)),
        ordered[max(low - 1, 0)],
        ordered[high] if high < n else math.inf,
    )


def needed_for(q: float) -> int:
    """Samples without which the largest does not bound the quantile `q` with 95 % confidence."""
    return math.ceil(math.log(1 - CONFIDENCE) / math.log(q))


def upper_bound_of_zero(n: int) -> float:
    """The rate that 0 of `n` rules out with 95 % confidence, one-sided."""
    return float(1 - (1 - CONFIDENCE) ** (1 / n)) if n else 1.0
