"""A worker is paused past its lease, another takes over, then the first one wakes up: a zombie.

Twice: once its step would go on for long (how long does it?), once its step was over during the
pause, so that its late result is the first thing it does (is it accepted?).
"""

from __future__ import annotations

import asyncio
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.databases import Server
from benchmarks.ownership.app import Hold
from benchmarks.ownership.bench import PATIENCE, Bench, Entry

SETTINGS = {
    "HAND_ROLLED_LEASE_TTL": "2",
    "HAND_ROLLED_HEARTBEAT_INTERVAL": "0.5",
    "HAND_ROLLED_CONCURRENCY": "1",
    "HAND_ROLLED_CRASH_DETECTION": "false",
}
LONG = Hold(seconds=600, tick=0.01)
SHORT = Hold(seconds=1, tick=0.01)  # over before the pause is


@dataclass(frozen=True)
class Zombies:
    """Seconds that each zombie went on working, and how many late results were accepted."""

    went_on: list[float]
    late_results: int
    accepted: int


async def zombies(server: Server, directory: Path, pauses: int) -> Zombies:
    """Pause, take over, wake up: so many times for either kind of step."""
    went_on, accepted = [], 0
    async with Bench.open(server, directory, SETTINGS) as bench:
        for _ in range(pauses):
            went_on.append(await _goes_on(bench))
        for _ in range(pauses):
            accepted += await _accepted(bench)
    return Zombies(went_on, pauses, accepted)


async def _woken(bench: Bench, step: Hold) -> tuple[Entry, float]:
    """The zombie's first diary entry, and when it was woken."""
    run = await bench.start_run(step)
    first = await bench.start_worker("paused")
    held = await bench.begun(run)
    await first.stopped()
    await bench.start_worker("successor")
    await bench.first(lambda entry: entry.run == run and entry.worker != held.worker)
    woken_at = time.monotonic()
    first.resume()
    return held, woken_at


async def _goes_on(bench: Bench) -> float:
    held, woken_at = await _woken(bench, LONG)
    end = await bench.first(
        lambda entry: entry.worker == held.worker and entry.event in ("interrupted", "ended")
    )
    await bench.engine.cancel(held.run)
    await _stop_all(bench)
    return end.t - woken_at


async def _accepted(bench: Bench) -> bool:
    held, _ = await _woken(bench, SHORT)
    await bench.engine.result(held.run, timeout=60)
    # The zombie's own stop waits until it has tried to record: only then is the journal final.
    await _stop_all(bench)
    return any(step.worker == held.worker for step in await bench.engine.steps(held.run))


async def _stop_all(bench: Bench) -> None:
    for process in bench.cluster.running:
        process.send(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            await process.child.wait()
