"""Compare two reports, for a build that must not get worse: `two-workers diff A B --fail-on …`.

    recovery_p50:+20%     fails if the median takeover after a kill rose by more than a fifth
    lost:+0               fails if a single run more was lost

Only arms that are in both reports are compared. A rise inside of the two intervals' overlap is
said to be noise, and does not fail.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from comparison.measures import ORPHANING, Measures
from comparison.meters import WRITES
from comparison.results import load
from comparison.stats import Interval, Summary
from two_workers import BadInput


def _median(summary: Summary | None) -> Interval | None:
    return None if summary is None else summary.median


def _exactly(value: float) -> Interval:
    return Interval(value, value, value)


def _maybe(value: float | None) -> Interval | None:
    return None if value is None else _exactly(value)


def _each_run(pair: tuple[float, float] | None) -> Interval | None:
    return None if pair is None else _exactly(pair[0])


METRICS: dict[str, Callable[[Measures], Interval | None]] = {
    "recovery_p50": lambda m: _median(m.takeover["kill"]),
    "pause_p50": lambda m: _median(m.takeover["pause"]),
    "silence_p50": lambda m: _median(m.takeover["silence"]),
    "mute_p50": lambda m: _median(m.takeover["mute"]),
    "progress_p50": lambda m: _median(m.productive),
    "amplification": lambda m: _exactly(m.duplicates.amplification),
    "zombie_calls": lambda m: _exactly(m.zombies.calls_made),
    "stale_writes": lambda m: _exactly(m.zombies.writes_accepted),
    "lost": lambda m: _exactly(m.runs_lost),
    "penalty_p50": lambda m: _median(m.penalty(*ORPHANING)),
    "writes": lambda m: _each_run(m.overhead.twin.each(WRITES)),
    "actions": lambda m: _maybe(m.overhead.twin.billable),
}


@dataclass(frozen=True)
class Limit:
    """How much a metric may rise: a share of its old value, or an amount."""

    metric: str
    rise: float
    relative: bool

    def allows(self, old: float, new: float) -> bool:
        """True when the rise from `old` to `new` is within the limit."""
        return new <= old + (old * self.rise if self.relative else self.rise)


def read_limit(text: str) -> Limit:
    """`METRIC:+20%` or `METRIC:+0.5`. Raises `BadInput`."""
    found = re.fullmatch(r"(\w+):\+(\d+(?:\.\d+)?)(%?)", text)
    if found is None or found[1] not in METRICS:
        raise BadInput(
            f"--fail-on {text!r}: expected METRIC:+20% or METRIC:+0.5, METRIC being one of "
            f"{', '.join(METRICS)}"
        )
    relative = bool(found[3])
    return Limit(found[1], float(found[2]) / (100 if relative else 1), relative)


@dataclass(frozen=True)
class Change:
    """One metric of one arm, before and after."""

    arm: str
    metric: str
    old: Interval
    new: Interval

    @property
    def is_noise(self) -> bool:
        """True when the intervals overlap: no change is shown."""
        return self.old.low <= self.new.high and self.new.low <= self.old.high

    def __str__(self) -> str:
        said = f"{self.arm:<16} {self.metric:<14} {self.old.value:8.3f} → {self.new.value:8.3f}"
        moved = self.old.value != self.new.value
        return f"{said}  within the intervals" if moved and self.is_noise else said


def changes(before: Path, after: Path) -> list[Change]:
    """Every metric that both reports have. Raises `BadInput` when they share no arm."""
    old = {result.arm: result.measures for result in load(before).results}
    new = {result.arm: result.measures for result in load(after).results}
    shared = [arm for arm in old if arm in new]
    if not shared:
        raise BadInput(f"{before} and {after} have no arm in common")
    found = []
    for arm in shared:
        for metric, value in METRICS.items():
            x, y = value(old[arm]), value(new[arm])
            if x is not None and y is not None:
                found.append(Change(arm, metric, x, y))
    return found


def broken(found: Sequence[Change], limits: Sequence[Limit]) -> list[Change]:
    """The changes that a limit forbids, beyond what the intervals leave open."""
    return [
        change
        for change in found
        for limit in limits
        if limit.metric == change.metric
        and not limit.allows(change.old.value, change.new.value)
        and not change.is_noise
    ]
