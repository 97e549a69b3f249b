"""A worker process is killed at work. How long until another one is at the same step?

The lease is 60 seconds, so only crash detection can be fast here: the survivor must have seen the
victim's advisory lock held, then free. The survivor has free capacity and nothing to do with the
victims; their runs fall to it one by one.
"""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

from benchmarks.databases import Server
from benchmarks.ownership.app import Hold
from benchmarks.ownership.bench import Bench, Entry
from comparison.cluster import Process

SETTINGS = {
    "HAND_ROLLED_LEASE_TTL": "60",
    "HAND_ROLLED_HEARTBEAT_INTERVAL": "5",
    "HAND_ROLLED_CRASH_DETECTION": "true",
}
BATCH = 12  # victims alive at the same time
SETTLED = 1.5  # seconds: many looks at the locks


async def takeovers(server: Server, directory: Path, kills: int) -> list[float]:
    """Seconds from SIGKILL to the first sign of the survivor at the same step, for each kill."""
    found: list[float] = []
    chance = random.Random(1)
    while len(found) < kills:
        async with Bench.open(server, directory, SETTINGS) as bench:
            found += await _one_batch(bench, min(BATCH, kills - len(found)), chance)
    return found


async def _one_batch(bench: Bench, kills: int, chance: random.Random) -> list[float]:
    # Victims take one run each; only then comes the survivor, or it would take them all.
    victims = await asyncio.gather(
        *(bench.start_worker(f"victim-{n}", HAND_ROLLED_CONCURRENCY="1") for n in range(kills))
    )
    runs = [await bench.start_run(Hold(seconds=600)) for _ in victims]
    held = [await bench.begun(run) for run in runs]
    await bench.start_worker("survivor", HAND_ROLLED_CONCURRENCY="100")
    await asyncio.sleep(SETTLED)  # who never saw a lock held may infer nothing from its absence
    by_worker = {victim.ready.result(): victim for victim in victims}
    return [await _kill(bench, by_worker[entry.worker], entry, chance) for entry in held]


async def _kill(bench: Bench, victim: Process, held: Entry, chance: random.Random) -> float:
    # Not a wait for a condition: a random moment between two polls and two heartbeats.
    await asyncio.sleep(chance.uniform(0.2, 0.5))
    killed_at = time.monotonic()
    await victim.killed()
    successor = await bench.first(
        lambda entry: entry.run == held.run and entry.worker != held.worker
    )
    return successor.t - killed_at
