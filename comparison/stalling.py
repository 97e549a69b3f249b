"""The investigation app for workers whose event loop is to be stalled: opt-in, by its own name.

    two-workers worker --app comparison.stalling:APP        then SIGUSR1 to the process

The handler sleeps in the main thread for `STALL_SECONDS` (default 3), and says when that was over
by the clock that all processes of a host share: the loop stands still, and so does everything on
it, while the kernel answers for the sockets and other threads run on. What a worker meets in real
life is a long regular expression, a large JSON or a garbage collection.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from investigation.app import APP as INVESTIGATION


def _stall(number: int, frame: object) -> None:
    seconds = float(os.environ.get("STALL_SECONDS", "3"))
    _say(f"stalling for {seconds:g} s")
    time.sleep(seconds)
    _say(f"stalled for {seconds:g} s, until {time.monotonic_ns()}")


def _say(line: str) -> None:
    os.write(1, f"{line}\n".encode())  # print() is not safe inside a signal handler


@asynccontextmanager
async def _stallable() -> AsyncIterator[Any]:
    async with INVESTIGATION.resources() as resources:
        before = signal.signal(signal.SIGUSR1, _stall)
        try:
            yield resources
        finally:
            signal.signal(signal.SIGUSR1, before)


APP = replace(INVESTIGATION, resources=_stallable)
