"""Rows about ownership: how soon it moves, and what an owner does that lost it."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks import targets
from benchmarks.bench import Bench
from benchmarks.ownership.cancel import cancellations
from benchmarks.ownership.takeover import takeovers
from benchmarks.ownership.zombie import zombies
from benchmarks.ratios import median, p95
from benchmarks.results import Estimate
from benchmarks.targets import Target
from comparison.stats import needed_for


async def takeover(bench: Bench) -> None:
    """SIGKILL → another worker at the same step, under a lease of 60 s."""
    found = await takeovers(bench.server, bench.directory, bench.size(60, 6))
    bench.samples["takeover after SIGKILL, s"] = found
    _durations(
        bench,
        "takeover after SIGKILL",
        found,
        targets.TAKEOVER_P95,
        "lease 60 s, crash detection on, survivor with free capacity",
    )


async def zombie(bench: Bench) -> None:
    """SIGSTOP past the lease, takeover, SIGCONT."""
    found = await zombies(bench.server, bench.directory, bench.size(3, 1))
    bench.samples["zombie goes on working, s"] = found.went_on
    accepted = Estimate(value=found.accepted, low=None, high=None, n=found.late_results)
    note = f"of {found.late_results} late results; lease 2 s, worker paused past it"
    bench.found("zombie", "late writes accepted", accepted, targets.ZOMBIE_WRITES, note)
    longest = Estimate(value=max(found.went_on), low=None, high=None, n=len(found.went_on))
    note = "longest of them, from SIGCONT until its step was interrupted"
    bench.found("zombie", "goes on working", longest, targets.ZOMBIE_WORK, note)


async def cancel(bench: Bench) -> None:
    """Cancel request → the running step is told."""
    found = await cancellations(bench.server, bench.directory, bench.size(100, 60))
    bench.samples["cancel → running step is told, s"] = found
    _durations(
        bench,
        "cancel → running step is told",
        found,
        targets.CANCEL_P95,
        "request included; pushed by NOTIFY, heartbeat every 5 s",
    )


def _durations(bench: Bench, row: str, found: Sequence[float], target: Target, note: str) -> None:
    bench.found(row, "median", median(found), None, note, unit="s")
    upper = p95(found)
    if upper is None:
        note = f"n = {len(found)} is too small: a p95 needs {needed_for(0.95)}"
    bench.found(row, "p95", upper, target, note)
