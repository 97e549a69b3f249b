"""A run is cancelled while its step runs. How long until the step is told?"""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

from benchmarks.databases import Server
from benchmarks.ownership.app import Hold
from benchmarks.ownership.bench import Bench

SETTINGS = {"HAND_ROLLED_LEASE_TTL": "60", "HAND_ROLLED_HEARTBEAT_INTERVAL": "5"}


async def cancellations(server: Server, directory: Path, count: int) -> list[float]:
    """Seconds from the request to the step's `CancelledError`, for each of `count` runs."""
    chance = random.Random(1)
    async with Bench.open(server, directory, SETTINGS) as bench:
        await bench.start_worker("worker", HAND_ROLLED_CONCURRENCY=str(count))
        runs = [await bench.start_run(Hold(seconds=600)) for _ in range(count)]
        for run in runs:
            await bench.begun(run)
        return [await _cancel(bench, run, chance) for run in runs]


async def _cancel(bench: Bench, run: str, chance: random.Random) -> float:
    await asyncio.sleep(chance.uniform(0, 0.05))  # at no particular moment
    asked_at = time.monotonic()
    await bench.engine.cancel(run, reason="benchmark")
    told = await bench.first(lambda entry: entry.run == run and entry.event == "interrupted")
    return told.t - asked_at
