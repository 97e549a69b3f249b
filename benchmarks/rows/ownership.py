"""Rows about ownership: how soon it moves, and what an owner does that lost it.

Ours are measured alone. Peers whose figures are milliseconds are, too; those whose figures are
made of their own timeouts wait side by side.
"""

from __future__ import annotations

import asyncio
import math
import statistics
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from benchmarks import targets
from benchmarks.bench import Bench
from benchmarks.ownership.cancel import Cancelled, cancellations
from benchmarks.ownership.scene import Contender
from benchmarks.ownership.takeover import restarts, takeovers
from benchmarks.ownership.zombie import LONG, Zombies, zombies
from benchmarks.ratios import median, p95
from benchmarks.results import SOONER, TAKEOVER, Estimate
from benchmarks.rows import contenders as who
from benchmarks.rows.contenders import Chosen, contending
from benchmarks.targets import Target
from comparison.stats import needed_for

ZOMBIE, CANCEL = "zombie", "cancel → running step is told"
WATCHED = 300.0  # seconds that a run is watched whose worker was killed
KILLS, PAUSES, PUSHED, UNTOLD = 3, 3, 60, 10  # of each peer
GROUP = 6  # cancelled at a time where more would be a test of the server's capacity
SHORT = 3.0  # seconds of a step that nobody tells of its cancellation

T = TypeVar("T")


async def takeover(bench: Bench) -> None:
    """SIGKILL → another worker at the same step: our lease is 60 s, peers are at their best."""
    async with contending(bench, {who.OURS: who.CRASH}) as [ours]:
        found = await takeovers(ours, bench.directory, bench.size(60, 6))
    bench.samples[f"{TAKEOVER}: {ours.name}"] = found
    note = f"{ours.words}, survivor with free capacity"
    _durations(bench, TAKEOVER, found, targets.TAKEOVER_P95, note)
    if bench.quick:
        return
    middle = statistics.median(found)
    chosen = {name: one for name, one in who.SOON.items() if name != who.DBOS}
    async for peer, theirs in side_by_side(
        bench, TAKEOVER, chosen, lambda peer: takeovers(peer, bench.directory, KILLS)
    ):
        taken(bench, peer, theirs, middle)


async def takeover_at_defaults(bench: Bench) -> None:
    """The same without any setting, watched for five minutes; and DBOS, started again."""
    chosen = {f"{name} at its defaults": one for name, one in who.DEFAULTS.items()}
    words = "no survivor: a process with the dead one's executor id is started at once"
    again = Chosen("dbos", words)

    async def measure(one: Contender) -> list[float]:
        if one.words == words:
            return await restarts(one, bench.directory, KILLS)
        return await takeovers(one, bench.directory, KILLS, watched=WATCHED)

    async for one, found in side_by_side(
        bench, TAKEOVER, {**chosen, f"{who.DBOS} started again": again}, measure
    ):
        taken(bench, one, found, 0)


async def zombie(bench: Bench) -> None:
    """SIGSTOP past the lease, takeover, SIGCONT."""
    pauses = bench.size(PAUSES, 1)
    async with contending(bench, {who.OURS: who.SHORT_LEASE}) as [ours]:
        found = await zombies(ours, bench.directory, pauses)
    _zombies(bench, ours, found, 0)
    chosen = {who.PGQUEUER: who.SOON[who.PGQUEUER]} if bench.quick else who.SOON
    async for peer, theirs in side_by_side(
        bench, ZOMBIE, chosen, lambda peer: zombies(peer, bench.directory, pauses)
    ):
        _zombies(bench, peer, theirs, max(found.went_on))


async def cancel(bench: Bench) -> None:
    """Cancel request → the running step is told."""
    async with contending(bench, {who.OURS: who.PUSHED}) as [ours]:
        found = (await cancellations(ours, bench.directory, bench.size(100, 60))).seconds
    bench.samples[f"{CANCEL}: {ours.name}"] = found
    _durations(bench, CANCEL, found, targets.CANCEL_P95, f"request included; {ours.words}")
    untold = {
        who.DBOS: who.DEFAULTS[who.DBOS],
        f"{who.ABSURD} without heartbeat()": who.DEFAULTS[who.ABSURD],
    }

    async def measure(peer: Contender) -> Cancelled:
        if peer.name in untold:
            return await cancellations(peer, bench.directory, UNTOLD, step=SHORT)
        at_once = GROUP if peer.holder == "temporal" else None
        return await cancellations(peer, bench.directory, PUSHED, at_once=at_once)

    beating = {name: who.SOON[name] for name in (who.TEMPORAL, who.ABSURD)}
    pushing = [{name: one} for name, one in who.NOTIFIED.items()]  # one after the other
    for chosen in pushing[:1] if bench.quick else [*pushing, beating | untold]:
        async for peer, theirs in side_by_side(bench, CANCEL, chosen, measure):
            _cancelled(bench, peer, theirs, statistics.median(found))


async def side_by_side(
    bench: Bench,
    row: str,
    chosen: Mapping[str, Chosen],
    measure: Callable[[Contender], Awaitable[T]],
) -> AsyncIterator[tuple[Contender, T]]:
    """Measure several at the same time; what goes wrong with one must not cost the others."""
    async with contending(bench, chosen) as peers:
        found = await asyncio.gather(*map(measure, peers), return_exceptions=True)
    for peer, it in zip(peers, found, strict=True):
        if isinstance(it, Exception):
            bench.failed(row, peer.name, it)
        elif isinstance(it, BaseException):
            raise it
        else:
            yield peer, it


def taken(bench: Bench, one: Contender, found: Sequence[float], ours: float) -> None:
    """The row of a contender with a few kills, some of which nobody may have taken over."""
    seen = sorted(seconds for seconds in found if math.isfinite(seconds))
    said = ", ".join(f"{seconds:.1f}" for seconds in seen) + " s" if seen else ""
    if len(seen) < len(found):
        never = f"never in {WATCHED:g} s ({len(found) - len(seen)} of {len(found)} kills)"
        said = f"{never}; {said}" if said else never
    middle = statistics.median(found)
    is_seen = math.isfinite(middle)
    value = middle if is_seen else WATCHED
    figure = Estimate(value=value, low=None, high=None, n=len(found), beyond=not is_seen)
    note = f"{said}; {one.words}" + _sooner(middle, ours)
    bench.found(TAKEOVER, f"{one.name}, median of {len(found)}", figure, None, note, unit="s")
    bench.samples[f"{TAKEOVER}: {one.name}"] = seen


def _zombies(bench: Bench, one: Contender, found: Zombies, ours: float) -> None:
    is_ours = one.name == who.OURS
    n = len(found.went_on)
    bench.samples[f"zombie goes on working: {one.name}"] = found.went_on
    accepted = Estimate(value=found.accepted, low=None, high=None, n=found.late_results)
    bench.found(
        ZOMBIE,
        f"{one.name}, late results accepted",
        accepted,
        targets.ZOMBIE_WRITES if is_ours else None,
        f"of {found.late_results}; {one.words}",
        unit="writes",
    )
    how = "until its step was interrupted"
    if found.told < n:
        how = f"to the end of its step of {LONG.seconds:g} s ({n - found.told} of {n})"
    longest = Estimate(value=max(found.went_on), low=None, high=None, n=n)
    note = f"longest of {n}, from SIGCONT {how}" + _sooner(longest.value, ours)
    target = targets.ZOMBIE_WORK if is_ours else None
    bench.found(ZOMBIE, f"{one.name}, goes on working", longest, target, note, unit="s")


def _cancelled(bench: Bench, one: Contender, found: Cancelled, ours: float) -> None:
    n, middle = len(found.seconds), statistics.median(found.seconds)
    bench.samples[f"{CANCEL}: {one.name}"] = found.seconds
    if found.told < n:
        figure = Estimate(value=max(found.seconds), low=None, high=None, n=n)
        note = f"at the step's end: {n - found.told} of {n} steps of {SHORT:g} s; {one.words}"
        bench.found(CANCEL, f"{one.name}, longest of {n}", figure, None, note, unit="s")
        return
    note = f"median {middle:.3g} s; {one.words}" + _sooner(middle, ours)
    bench.found(CANCEL, f"{one.name}, p95", p95(found.seconds), None, note, unit="s")


def _sooner(theirs: float, ours: float) -> str:
    return f"; {SOONER}" if theirs < ours else ""


def _durations(bench: Bench, row: str, found: Sequence[float], target: Target, note: str) -> None:
    bench.found(row, f"{who.OURS}, median", median(found), None, note, unit="s")
    upper = p95(found)
    if upper is None:
        note = f"n = {len(found)} is too small: a p95 needs {needed_for(0.95)}"
    bench.found(row, f"{who.OURS}, p95", upper, target, note)
