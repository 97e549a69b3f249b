"""A worker process is killed at work. How long until another one is at the same step?

The survivor is idle: it has free capacity and nothing to do with the victims, whose runs fall to
it. It has carried out a run before the first kill, so it is known to be at work.
"""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

from benchmarks.ownership.diary import Entry
from benchmarks.ownership.holding import Hold
from benchmarks.ownership.scene import Contender, Scene
from comparison.cluster import Process

BATCH = 20  # victims alive at the same time
SETTLED = 1.5  # seconds: many looks at the locks
APART = 0.4  # seconds between two kills of a batch
AT_WORK = Hold(seconds=600)


async def takeovers(
    contender: Contender, directory: Path, kills: int, *, watched: float = 300.0
) -> list[float]:
    """Seconds from SIGKILL to the first sign of the survivor at the same step, for each kill.

    Infinity for a run that nobody took over while it was watched, for `watched` seconds.
    """
    found: list[float] = []
    chance = random.Random(1)
    while len(found) < kills:
        async with Scene.open(contender, directory) as scene:
            found += await _one_batch(scene, min(BATCH, kills - len(found)), watched, chance)
    return found


async def _one_batch(
    scene: Scene, kills: int, watched: float, chance: random.Random
) -> list[float]:
    # Victims take one run each; only then comes the survivor, or it would take them all.
    victims = await asyncio.gather(
        *(scene.start_worker(f"victim-{n}", concurrency=1) for n in range(kills))
    )
    held = await scene.occupied(victims, AT_WORK)
    survivor = await scene.start_worker("survivor", concurrency=100)
    await scene.occupied([survivor], Hold(seconds=0))
    await asyncio.sleep(SETTLED)  # who never saw a lock held may infer nothing from its absence
    # One after the other, each at a random moment between two polls and two heartbeats.
    moments = [number * APART + chance.uniform(0, APART / 2) for number in range(kills)]
    return await asyncio.gather(
        *(
            _kill(scene, victim, entry, moment, watched)
            for victim, entry, moment in zip(victims, held, moments, strict=True)
        )
    )


async def _kill(scene: Scene, victim: Process, held: Entry, moment: float, watched: float) -> float:
    await asyncio.sleep(moment)
    killed_at = time.monotonic()
    await victim.killed()
    try:
        successor = await scene.diary.first(
            lambda entry: entry.run == held.run and entry.pid != held.pid, patience=watched
        )
    except TimeoutError:
        return float("inf")
    if successor.t < killed_at:
        raise RuntimeError("the run had been taken over before its worker was killed")
    return successor.t - killed_at


async def restarts(contender: Contender, directory: Path, kills: int) -> list[float]:
    """Seconds from SIGKILL to the same step in a process that is started in the dead one's place.

    With the dead one's name, at once, and beside no other: a supervisor's work, not a survivor's.
    """
    found = []
    async with Scene.open(contender, directory) as scene:
        worker = await scene.start_worker("worker", concurrency=1)
        [held] = await scene.occupied([worker], AT_WORK)
        for _ in range(kills):
            killed_at = time.monotonic()
            await worker.killed()
            worker = await scene.start_worker("worker", concurrency=1)
            again = await scene.diary.begun(held.run, pid=worker.pid)
            found.append(again.t - killed_at)
    return found
