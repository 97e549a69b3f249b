"""The app under test: an agent of one step, which holds and keeps a diary."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Literal

from two_workers import App, Call, Effect, Step, do

DIARY = "BENCH_DIARY"  # the environment variable that names the file

Event = Literal["began", "ticked", "ended", "interrupted"]


class Hold(Step[str]):
    """Hold for so many seconds of CLOCK_MONOTONIC, which goes on while a process is paused.

    `tick` is the time between two signs of being still at work.
    """

    seconds: float
    tick: float = 0.5


async def hold(payload: Hold) -> str:
    """The agent."""
    return await do(payload)


async def perform(step: Hold, call: Call) -> str:
    """The effect: hold, and write down what happens."""
    until = time.monotonic() + step.seconds
    with _diary() as write:
        write(call, "began")
        try:
            while time.monotonic() < until:
                await asyncio.sleep(step.tick)
                write(call, "ticked")
                call.beat(None)
        except asyncio.CancelledError:
            write(call, "interrupted")
            raise
        write(call, "ended")
    return call.worker


@contextmanager
def _diary() -> Iterator[partial[None]]:
    # One write per line to a file opened for appending: lines of several processes never mix.
    file = os.open(os.environ[DIARY], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        yield partial(_write, file)
    finally:
        os.close(file)


def _write(file: int, call: Call, event: Event) -> None:
    entry = {
        "t": time.monotonic(),
        "run": call.run_id,
        "worker": call.worker,
        "pid": os.getpid(),
        "fence": call.fence[0],
        "event": event,
    }
    os.write(file, json.dumps(entry).encode() + b"\n")


APP = App(kind="hold", agent=hold, effects={Hold: Effect(perform, timeout=600)})
