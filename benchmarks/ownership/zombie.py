"""A worker is paused past its lease, another takes over, then the first one wakes up: a zombie.

Two questions. How long does it go on with a step that would take longer? Is a late result
accepted, one that it reports while its successor is still at the step? Who is told to stop reports
none then, so the second question is asked again with a step that was over during the pause.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.ownership.holding import Hold
from benchmarks.ownership.scene import Contender, Scene

LONG = Hold(seconds=6, tick=0.01)
SHORT = Hold(seconds=1, tick=0.01)  # over before the pause is
NOTICED = 0.02  # seconds between two looks at the outcome


@dataclass
class Zombies:
    """Seconds that each zombie went on working, and what came of the late results.

    `told` counts those that were interrupted; the others went on to the end of the step.
    """

    went_on: list[float] = field(default_factory=list)
    told: int = 0
    late_results: int = 0
    accepted: int = 0


@dataclass(frozen=True)
class _Woken:
    run: str
    zombie: int  # process id
    successor: int
    at: float


async def zombies(contender: Contender, directory: Path, pauses: int) -> Zombies:
    """Pause, take over, wake up: so many times, for either kind of step where both are needed."""
    found = Zombies()
    async with Scene.open(contender, directory) as scene:
        await asyncio.gather(*(scene.start_worker(name, concurrency=1) for name in "ab"))
        for _ in range(pauses):
            woken = await _woken(scene, LONG)
            end = await scene.diary.over(woken.run, woken.zombie)
            found.went_on.append(end.t - woken.at)
            if end.event == "ended":
                await _late_result(scene, woken, found)
            else:
                found.told += 1
                await scene.client.cancel(woken.run)
                await scene.diary.over(woken.run, woken.successor)
        for _ in range(pauses if found.told else 0):
            woken = await _woken(scene, SHORT)
            end = await scene.diary.over(woken.run, woken.zombie)
            if end.event == "ended":
                await _late_result(scene, woken, found)
    return found


async def _woken(scene: Scene, step: Hold) -> _Woken:
    """Pause whoever takes the run, wait for the other one, wake the first up."""
    run = await scene.client.start(step)
    held = await scene.diary.begun(run)
    [paused] = [process for process in scene.cluster.running if process.pid == held.pid]
    await paused.stopped()
    await scene.client.recover(run)
    taken = await scene.diary.first(lambda entry: entry.run == run and entry.pid != held.pid)
    woken_at = time.monotonic()
    paused.resume()
    return _Woken(run, held.pid, taken.pid, woken_at)


async def _late_result(scene: Scene, woken: _Woken, found: Zombies) -> None:
    """Count the late result. It was accepted if the run had succeeded before its owner's step was
    over, or ends with the zombie's result."""
    found.late_results += 1
    owner = asyncio.ensure_future(scene.diary.over(woken.run, woken.successor))
    succeeded_by = float("inf")
    while not owner.done():
        if await scene.client.outcome(woken.run) is not None:
            succeeded_by = min(succeeded_by, time.monotonic())
        await asyncio.wait([owner], timeout=NOTICED)
    was_early = succeeded_by < (await owner).t
    found.accepted += was_early or await _result(scene, woken.run) == str(woken.zombie)


async def _result(scene: Scene, run: str) -> str:
    async with asyncio.timeout(60):
        while (found := await scene.client.outcome(run)) is None:
            await asyncio.sleep(NOTICED)
    return found
