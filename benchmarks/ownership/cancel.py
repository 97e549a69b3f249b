"""A run is cancelled while its step runs. How long until the step is told?"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.ownership.holding import Hold
from benchmarks.ownership.scene import Contender, Scene

APART = 0.03  # seconds between two cancellations


@dataclass(frozen=True)
class Cancelled:
    """Seconds from the request to the step's interruption, or, if nobody told it, to its end."""

    seconds: list[float]
    told: int


async def cancellations(
    contender: Contender,
    directory: Path,
    count: int,
    *,
    at_once: int | None = None,
    step: float = 600.0,
) -> Cancelled:
    """Cancel `count` runs whose steps of `step` seconds are running in one worker.

    All of them run at the same time, unless `at_once` says how many.
    """
    size = at_once or count
    chance = random.Random(1)
    found: list[tuple[float, bool]] = []
    async with Scene.open(contender, directory) as scene:
        while len(found) < count:
            runs = [await scene.client.start(Hold(seconds=step)) for _ in range(size)]
            if not scene.cluster.running:
                await scene.start_worker("worker", concurrency=size)
            found += await _cancel_all(scene, runs, chance)
    return Cancelled([seconds for seconds, _ in found], sum(told for _, told in found))


async def _cancel_all(
    scene: Scene, runs: list[str], chance: random.Random
) -> list[tuple[float, bool]]:
    for run in runs:
        await scene.diary.begun(run)
    # At no particular moment.
    moments = [number * APART + chance.uniform(0, APART) for number in range(len(runs))]
    return await asyncio.gather(
        *(_cancel(scene, run, moment) for run, moment in zip(runs, moments, strict=True))
    )


async def _cancel(scene: Scene, run: str, moment: float) -> tuple[float, bool]:
    await asyncio.sleep(moment)
    asked_at = time.monotonic()
    await scene.client.cancel(run)
    end = await scene.diary.first(lambda entry: entry.run == run and entry.is_last)
    return end.t - asked_at, end.event == "interrupted"
