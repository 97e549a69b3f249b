"""The step under test: it holds, and keeps the diary. The same code in every contender's worker."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable

from benchmarks.ownership.diary import writing
from two_workers import Call, Step


class Hold(Step[str]):
    """Hold for so many seconds of CLOCK_MONOTONIC, which goes on while a process is paused.

    `tick` is the time between two signs of being still at work. The result is the process that
    held to the end.
    """

    seconds: float
    tick: float = 0.5


async def hold(step: Hold, run: str, beat: Callable[[], Awaitable[None]] | None = None) -> str:
    """Hold. `beat` is called at each tick; what it raises interrupts the step."""
    until = time.monotonic() + step.seconds
    with writing(run) as write:
        write("began")
        try:
            while (left := until - time.monotonic()) > 0:
                await asyncio.sleep(min(step.tick, left))
                write("ticked")
                # A step that is over has nothing left to beat for: it reports its result.
                if beat is not None and time.monotonic() < until:
                    await beat()
        except BaseException:
            write("interrupted")
            raise
        write("ended")
    return str(os.getpid())


async def perform(step: Hold, call: Call) -> str:
    """The effect of this project's own app."""

    async def beat() -> None:
        call.beat(None)

    return await hold(step, call.run_id, beat)
