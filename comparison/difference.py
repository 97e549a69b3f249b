"""Compare two reports, for a build that must not get worse: `two-workers diff A B --fail-on …`.

    recovery_p50:+20%     fails if the median takeover after a kill rose by more than a fifth
    lost:+0               fails if a single run more was lost

A rise inside of the two intervals' overlap is said to be noise, and does not fail. A metric that
a limit is set on and that one side lacks is no success: the answer is unknown. So it is when a
figure rose beyond its limit and has no interval to say whether that is noise. And no limit is
needed for what `compare` itself would fail: a verdict of B that is FAIL.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from scipy import stats

from comparison.experiment import Noted, read_noted
from comparison.measures import ORPHANING, Measures
from comparison.meters import WRITES
from comparison.reading import ALIKE
from comparison.render import Report
from comparison.results import load
from comparison.stats import CONFIDENCE, Interval, Summary
from comparison.verdicts import Outcome
from two_workers import BadInput


def _median(summary: Summary | None) -> Interval | None:
    return None if summary is None else summary.median


def _exactly(value: float) -> Interval:
    return Interval(value, value, value)


def _maybe(value: float | None) -> Interval | None:
    return None if value is None else _exactly(value)


def _each_run(pair: tuple[float, float] | None) -> Interval | None:
    return None if pair is None else _exactly(pair[0])


def _rate(count: int, of: int) -> Interval | None:
    """So many for each; the interval is the exact one of a Poisson count. None of none."""
    if of == 0:
        return None
    tail = (1 - CONFIDENCE) / 2
    low = float(stats.chi2.ppf(tail, 2 * count)) / 2 if count else 0.0
    high = float(stats.chi2.ppf(1 - tail, 2 * count + 2)) / 2
    return Interval(count / of, low / of, high / of)


METRICS: dict[str, Callable[[Measures], Interval | None]] = {
    "recovery_p50": lambda m: _median(m.takeover["kill"]),
    "pause_p50": lambda m: _median(m.takeover["pause"]),
    "silence_p50": lambda m: _median(m.takeover["silence"]),
    "mute_p50": lambda m: _median(m.takeover["mute"]),
    "stall_p50": lambda m: _median(m.waits("stall")),
    "restart_p50": lambda m: _median(m.waits("restart")),
    "progress_p50": lambda m: _median(m.productive),
    "duplicates_per_orphan": lambda m: _rate(m.duplicate_calls, len(m.recoveries)),
    "zombie_calls_per_return": lambda m: _rate(m.zombies.calls_made, m.zombies.spared),
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
        if new <= old:
            return True
        return new - old <= (abs(old) * self.rise if self.relative else self.rise)


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
    """One metric of one arm, before and after; None on the side that does not have it."""

    arm: str
    metric: str
    old: Interval | None
    new: Interval | None

    @property
    def is_noise(self) -> bool:
        """True when the intervals overlap: no change is shown."""
        if self.old is None or self.new is None:
            return False
        return self.old.low <= self.new.high and self.new.low <= self.old.high

    @property
    def has_intervals(self) -> bool:
        """False for the figure of a single fault: any rise would be within its interval."""
        bounds = [bound for side in (self.old, self.new) if side for bound in (side.low, side.high)]
        return -math.inf not in bounds

    def exceeds(self, limit: Limit) -> bool:
        """True when both sides have the limit's metric, and it rose by more."""
        if limit.metric != self.metric or self.old is None or self.new is None:
            return False
        return not limit.allows(self.old.value, self.new.value)

    def __str__(self) -> str:
        said = f"{self.arm:<16} {self.metric:<23} {_said(self.old)} → {_said(self.new)}"
        if self.old is None or self.new is None or self.old.value == self.new.value:
            return said
        if not self.has_intervals:
            return f"{said}  one fault has no interval"
        return f"{said}  within the intervals" if self.is_noise else said


def _said(side: Interval | None) -> str:
    return "    none" if side is None else f"{side.value:8.3f}"


@dataclass(frozen=True)
class Difference:
    """All that is not the same. `experiments`: what was done; `failed`: verdicts of B that are."""

    experiments: tuple[str, ...]
    changes: tuple[Change, ...]
    failed: tuple[str, ...]

    def broken(self, limits: Sequence[Limit]) -> list[str]:
        """What forbids B: its failed verdicts, and what rose beyond a limit and is no noise."""
        return [*self.failed, *(f"{c.arm} {c.metric}" for c in broken(self.changes, limits))]

    def unknown(self, limits: Sequence[Limit]) -> list[str]:
        """What the limits ask for and the two reports cannot answer."""
        return [reason for limit in limits for reason in self._unknown(limit)]

    def _unknown(self, limit: Limit) -> Iterator[str]:
        mine = [change for change in self.changes if change.metric == limit.metric]
        if not mine:
            yield f"{limit.metric}: neither has it"
        for change in mine:
            if change.old is None or change.new is None:
                side = "before" if change.old is None else "after"
                yield f"{change.arm} {change.metric}: the report {side} does not have it"
            elif change.exceeds(limit) and not change.has_intervals:
                yield f"{change.arm} {change.metric}: rose, and one fault alone has no interval"


def difference(before: Path, after: Path) -> Difference:
    """Everything that differs. Raises `BadInput` when a side is no comparison, or no arm shared."""
    old, new = load(before), load(after)
    return Difference(
        experiments=(
            *_experiments(read_noted(before), read_noted(after)),
            *_machines(old, new),
        ),
        changes=tuple(_changes(old, new)),
        failed=tuple(
            f"{result.arm} {verdict.invariant}: {verdict.detail}"
            for result in new.results
            for verdict in result.verdicts
            if verdict.outcome is Outcome.FAIL
        ),
    )


def changes(before: Path, after: Path) -> list[Change]:
    """Every metric that either report has. Raises `BadInput` when they share no arm."""
    return _changes(load(before), load(after))


def _changes(before: Report, after: Report) -> list[Change]:
    """An arm that only the old report has lacks every metric in the new one."""
    old = {result.arm: result.measures for result in before.results}
    new = {result.arm: result.measures for result in after.results}
    if not old.keys() & new.keys():
        raise BadInput(
            f"the two have no arm in common: {', '.join(old)} before, {', '.join(new)} after"
        )
    found = [
        Change(arm, metric, value(measures), value(new[arm]) if arm in new else None)
        for arm, measures in old.items()
        for metric, value in METRICS.items()
    ]
    return [change for change in found if (change.old, change.new) != (None, None)]


def broken(found: Sequence[Change], limits: Sequence[Limit]) -> list[Change]:
    """The changes that a limit forbids, beyond what the intervals leave open."""
    return [
        change
        for change in found
        for limit in limits
        if change.exceeds(limit) and not change.is_noise
    ]


def _experiments(before: Noted, after: Noted) -> Iterator[str]:
    """How what was done to one differs from what was done to the other."""
    old, new = _facts(before), _facts(after)
    for name in dict.fromkeys([*old, *new]):
        then, now = old.get(name, "none"), new.get(name, "none")
        if then != now:
            yield f"{name}: {then} before, {now} after"
    if before.campaigns != after.campaigns and old == new:
        yield "plan: the same counts, in another order or at other points"


def _machines(before: Report, after: Report) -> Iterator[str]:
    """Arms for which the machine was not equally busy: their durations are not to be compared."""
    new = {result.arm: result.cpu_pressure for result in after.results}
    for arm, then in ((result.arm, result.cpu_pressure) for result in before.results):
        now = new.get(arm)
        if then is not None and now is not None and abs(now - then) > ALIKE:
            yield (
                f"{arm}, time in which some process waited for a CPU: {then:.0%} before, "
                f"{now:.0%} after; where that is more, every duration is longer"
            )


def _facts(noted: Noted) -> dict[str, str]:
    """What an experiment is, in words."""
    plans = list(noted.campaigns.values())
    faults = Counter(fault.kind for plan in plans for fault in plan.faults)
    return {
        "seed": str(noted.seed),
        "arms": ", ".join(sorted(noted.arms)),
        "campaigns": str(len(plans)),
        "workers": ", ".join(sorted({str(plan.workers) for plan in plans})),
        "investigations": str(sum(plan.investigations for plan in plans)),
        **{f"faults: {kind}": str(count) for kind, count in sorted(faults.items())},
        **{
            f"{arm} {name}": value
            for arm, settings in sorted(noted.settings.items())
            for name, value in sorted(settings.items())
        },
    }
