"""Statistics for small samples: intervals always, and no figure that the sample cannot carry.

Samples that come from one fault are correlated (a kill orphans several runs at once), so medians
are bootstrapped over *blocks*: whole faults are resampled, never single runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

CONFIDENCE = 0.95
RESAMPLES = 4_000


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Summary:
    """A sample of durations in seconds, from `blocks` independent faults."""

    n: int
    blocks: int
    median: Interval
    maximum: float
    p95: Interval | None


def summarise(blocks: Sequence[Sequence[float]], *, seed: int = 0) -> Summary | None:
    """Median, maximum and, from 59 samples on, p95 with its interval; None without a sample.

    With fewer than 59 samples not even the largest one bounds the p95 from above with 95 %
    confidence (1 − 0.95^n), so none is given.
    """
    filled = [list(block) for block in blocks if block]
    values = sorted(value for block in filled for value in block)
    if not values:
        return None
    return Summary(
        n=len(values),
        blocks=len(filled),
        median=median_over_blocks(filled, seed=seed),
        maximum=values[-1],
        p95=quantile_interval(values, 0.95) if len(values) >= needed_for(0.95) else None,
    )


def median_over_blocks(blocks: Sequence[Sequence[float]], *, seed: int) -> Interval:
    """The median of all values; its interval by the percentile bootstrap over blocks."""
    values = np.concatenate([np.asarray(block, dtype=float) for block in blocks])
    if len(blocks) == 1:
        return Interval(float(np.median(values)), -math.inf, math.inf)
    chance = np.random.default_rng(seed)
    picks = chance.integers(len(blocks), size=(RESAMPLES, len(blocks)))
    medians = [np.median(np.concatenate([blocks[i] for i in pick])) for pick in picks]
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(medians, [tail, 1 - tail])
    return Interval(float(np.median(values)), float(low), float(high))


def quantile_interval(values: Sequence[float], q: float) -> Interval:
    """A quantile and its interval by order statistics: no assumption about the distribution."""
    ordered, n = sorted(values), len(values)
    tail = (1 - CONFIDENCE) / 2
    # How many of n values lie below the true quantile is binomial, whatever their distribution.
    low, high = (int(stats.binom.ppf(p, n, q)) for p in (tail, 1 - tail))
    return Interval(
        float(np.quantile(ordered, q)),
        ordered[max(low - 1, 0)],
        ordered[high] if high < n else math.inf,
    )


def needed_for(q: float) -> int:
    """Samples without which the largest does not bound the quantile `q` with 95 % confidence."""
    return math.ceil(math.log(1 - CONFIDENCE) / math.log(q))


def proportion(k: int, n: int) -> Interval:
    """A rate with its exact (Clopper–Pearson) interval."""
    interval = stats.binomtest(k, n).proportion_ci(CONFIDENCE)
    return Interval(k / n, float(interval.low), float(interval.high))


def upper_bound_of_zero(n: int) -> float:
    """The rate that 0 of `n` rules out with 95 % confidence, one-sided."""
    return float(1 - (1 - CONFIDENCE) ** (1 / n)) if n else 1.0
