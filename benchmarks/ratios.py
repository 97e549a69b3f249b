"""Ratios with intervals. Each round gives one ratio; the rounds are what is resampled.

The ratio of a contest is the geometric mean of its rounds' ratios. Its interval is the bootstrap's
(bias-corrected, 95 %). With five rounds that is a rough one, somewhat too narrow; it answers
whether the rounds agree, not how another machine would decide.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats

from benchmarks.results import Estimate
from comparison.stats import CONFIDENCE, needed_for, quantile_interval


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> Estimate:
    """Ours over theirs, paired by round."""
    logs = np.log(np.asarray(ours) / np.asarray(theirs))
    value = float(np.exp(logs.mean()))
    if len(logs) < 3 or np.ptp(logs) == 0:
        return Estimate(value=value, low=None, high=None, n=len(logs))
    found = stats.bootstrap(
        (logs,), np.mean, confidence_level=CONFIDENCE, method="BCa", rng=np.random.default_rng(0)
    ).confidence_interval
    low, high = float(np.exp(found.low)), float(np.exp(found.high))
    return Estimate(value=value, low=low, high=high, n=len(logs))


def median(values: Sequence[float]) -> Estimate:
    """The median of a sample and its interval by order statistics."""
    return _quantile(values, 0.5)


def p95(values: Sequence[float]) -> Estimate | None:
    """The 95th percentile; None below 59 samples, which cannot carry one."""
    return _quantile(values, 0.95) if len(values) >= needed_for(0.95) else None


def _quantile(values: Sequence[float], q: float) -> Estimate:
    if len(values) < 6:
        return Estimate(value=float(np.quantile(values, q)), low=None, high=None, n=len(values))
    found = quantile_interval(values, q)
    low = found.low if np.isfinite(found.low) else None
    high = found.high if np.isfinite(found.high) else None
    return Estimate(value=found.value, low=low, high=high, n=len(values))


def ratio_of_medians(ours: Sequence[float], theirs: Sequence[float]) -> Estimate:
    """The median of ours over the median of theirs, for two samples of single durations."""
    found = stats.bootstrap(
        (np.asarray(ours), np.asarray(theirs)),
        lambda a, b, axis: np.median(a, axis=axis) / np.median(b, axis=axis),
        confidence_level=CONFIDENCE,
        n_resamples=2_000,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    value = float(np.median(ours) / np.median(theirs))
    return Estimate(value=value, low=float(found.low), high=float(found.high), n=len(ours))
