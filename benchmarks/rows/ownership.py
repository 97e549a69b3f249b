"""Rows about ownership: how soon it moves, and what an owner does that lost it.

Ours are measured alone. Peers whose figures are milliseconds are, too; those whose figures are
made of their own timeouts wait side by side.
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Awaitable, Callable, Mapping, Sequence

from benchmarks import targets
from benchmarks.bench import Bench
from benchmarks.ownership.cancel import Cancelled, cancellations
from benchmarks.ownership.scene import Contender
from benchmarks.ownership.takeover import restarts, takeovers
from benchmarks.ownership.zombie import LONG, Zombies, zombies
from benchmarks.ratios import median, p95
from benchmarks.results import TAKEOVER, Estimate
from benchmarks.rows import contenders as who
from benchmarks.rows.contenders import Chosen, contending
from benchmarks.targets import Target
from comparison.stats import needed_for

ZOMBIE, CANCEL = "zombie", "cancel → running step is told"
WATCHED_SOON, WATCHED = 60.0, 300.0  # seconds that a run is watched whose worker was killed
KILLS, PAUSES, PUSHED, UNTOLD = 3, 3, 60, 10  # of each peer
GROUP = 10  # cancelled at a time where more would be a test of the server's capacity
SHORT = 3.0  # seconds of a step that nobody tells of its cancellation


async def takeover(bench: Bench) -> None:
    """SIGKILL → another worker at the same step: our lease is 60 s, peers are at their best."""
    async with contending(bench, {who.OURS: who.CRASH}) as [ours]:
        found = await takeovers(ours, bench.directory, bench.size(60, 6))
    bench.samples[f"{TAKEOVER}, s"] = found
    note = f"{ours.words}, survivor with free capacity"
    _durations(bench, TAKEOVER, found, targets.TAKEOVER_P95, note)
    middle = statistics.median(found)

    async def measure(peer: Contender) -> None:
        _taken(bench, peer, await takeovers(peer, bench.directory, KILLS), WATCHED_SOON, middle)

    if not bench.quick:
        chosen = {name: one for name, one in who.SOON.items() if name != who.DBOS}
        await _side_by_side(bench, TAKEOVER, chosen, measure)


async def takeover_at_defaults(bench: Bench) -> None:
    """The same without any setting, watched for five minutes; and DBOS, started again."""

    async def measure(one: Contender) -> None:
        found = await takeovers(one, bench.directory, KILLS, watched=WATCHED)
        _taken(bench, one, found, WATCHED, 0)

    async def again(one: Contender) -> None:
        _taken(bench, one, await restarts(one, bench.directory, KILLS), WATCHED, 0)

    words = "no survivor: a process with the dead one's executor id is started at once"
    await asyncio.gather(
        _side_by_side(bench, TAKEOVER, who.DEFAULTS, measure),
        _side_by_side(bench, TAKEOVER, {f"{who.DBOS} started again": Chosen("dbos", words)}, again),
    )


async def zombie(bench: Bench) -> None:
    """SIGSTOP past the lease, takeover, SIGCONT."""
    pauses = bench.size(PAUSES, 1)
    async with contending(bench, {who.OURS: who.SHORT_LEASE}) as [ours]:
        found = await zombies(ours, bench.directory, pauses)
    bench.samples["zombie goes on working, s"] = found.went_on
    _zombies(bench, ours, found, 0)

    async def measure(peer: Contender) -> None:
        _zombies(bench, peer, await zombies(peer, bench.directory, pauses), max(found.went_on))

    chosen = who.SOON if not bench.quick else {who.PGQUEUER: who.SOON[who.PGQUEUER]}
    await _side_by_side(bench, ZOMBIE, chosen, measure)


async def cancel(bench: Bench) -> None:
    """Cancel request → the running step is told."""
    async with contending(bench, {who.OURS: who.PUSHED}) as [ours]:
        found = (await cancellations(ours, bench.directory, bench.size(100, 60))).seconds
    bench.samples[f"{CANCEL}, s"] = found
    _durations(bench, CANCEL, found, targets.CANCEL_P95, f"request included; {ours.words}")
    middle = statistics.median(found)

    async def pushed(peer: Contender) -> None:
        cancelled = await cancellations(peer, bench.directory, PUSHED)
        _cancelled(bench, peer, cancelled, middle)

    async def in_groups(peer: Contender) -> None:
        # The development server's SQLite has one writer: more beats at a time than these wait.
        cancelled = await cancellations(peer, bench.directory, PUSHED, at_once=GROUP)
        _cancelled(bench, peer, cancelled, middle)

    async def untold(peer: Contender) -> None:
        cancelled = await cancellations(peer, bench.directory, UNTOLD, step=SHORT)
        _cancelled(bench, peer, cancelled, middle)

    push = "pushed by NOTIFY"
    await _side_by_side(bench, CANCEL, {who.PGQUEUER: Chosen("pgqueuer", push)}, pushed)
    if bench.quick:
        return
    await _side_by_side(bench, CANCEL, {who.PROCRASTINATE: Chosen("procrastinate", push)}, pushed)
    silent = {
        who.DBOS: Chosen("dbos", "its defaults"),
        f"{who.ABSURD} without heartbeat()": who.DEFAULTS[who.ABSURD],
    }
    await asyncio.gather(
        _side_by_side(bench, CANCEL, {who.TEMPORAL: who.SOON[who.TEMPORAL]}, in_groups),
        _side_by_side(bench, CANCEL, {who.ABSURD: who.SOON[who.ABSURD]}, pushed),
        _side_by_side(bench, CANCEL, silent, untold),
    )


async def _side_by_side(
    bench: Bench,
    row: str,
    chosen: Mapping[str, Chosen],
    measure: Callable[[Contender], Awaitable[None]],
) -> None:
    """Measure several at the same time; what goes wrong with one must not cost the others."""

    async def guarded(peer: Contender) -> None:
        try:
            await measure(peer)
        except Exception as error:
            bench.failed(row, peer.name, error)

    async with contending(bench, chosen) as peers:
        await asyncio.gather(*(guarded(peer) for peer in peers))


def _taken(
    bench: Bench, one: Contender, found: Sequence[float], watched: float, ours: float
) -> None:
    """The row of a contender with a few kills, some of which nobody may have taken over."""
    taken = sorted(seconds for seconds in found if seconds < watched)
    said = ", ".join(f"{seconds:.1f}" for seconds in taken) + " s" if taken else ""
    if len(taken) < len(found):
        never = f"never in {watched:g} s ({len(found) - len(taken)} of {len(found)} kills)"
        said = f"{never}; {said}" if said else never
    middle = statistics.median(found)
    figure = Estimate(
        value=min(middle, watched), low=None, high=None, n=len(found), beyond=middle > watched
    )
    note = f"{said}; {one.words}" + _sooner(middle, ours)
    bench.found(TAKEOVER, f"{one.name}, median of {len(found)}", figure, None, note, unit="s")
    bench.samples[f"{TAKEOVER}, {one.name}, {one.words}, s"] = taken


def _zombies(bench: Bench, one: Contender, found: Zombies, ours: float) -> None:
    is_ours = one.name == who.OURS
    n = len(found.went_on)
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
    bench.samples[f"{CANCEL}, {one.name}, s"] = found.seconds
    if found.told < n:
        figure = Estimate(value=max(found.seconds), low=None, high=None, n=n)
        note = f"at the step's end: {n - found.told} of {n} steps of {SHORT:g} s; {one.words}"
        bench.found(CANCEL, f"{one.name}, longest of {n}", figure, None, note, unit="s")
        return
    note = f"median {middle:.3g} s; {one.words}" + _sooner(middle, ours)
    bench.found(CANCEL, f"{one.name}, p95", p95(found.seconds), None, note, unit="s")


def _sooner(theirs: float, ours: float) -> str:
    return "; sooner than hand_rolled" if theirs < ours else ""


def _durations(bench: Bench, row: str, found: Sequence[float], target: Target, note: str) -> None:
    bench.found(row, f"{who.OURS}, median", median(found), None, note, unit="s")
    upper = p95(found)
    if upper is None:
        note = f"n = {len(found)} is too small: a p95 needs {needed_for(0.95)}"
    bench.found(row, f"{who.OURS}, p95", upper, target, note)
