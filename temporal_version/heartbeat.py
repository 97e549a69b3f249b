"""Heartbeats of one activity attempt: the lease is renewed while the effect is alive.

`beat(detail)` may be called as often as an effect likes and from any thread: it only stores the
detail and wakes this task, which hands the newest detail to the SDK. Between beats the task beats
by itself, so that an effect that waits a minute for its model keeps its lease of six seconds.

Heartbeat is not progress: with `progress_timeout`, an effect that neither ended nor called `beat`
for so long is no longer vouched for, and the server gives the step to somebody else. An effect
that blocks the event loop is not vouched for either; blocking work belongs in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from pydantic import JsonValue
from temporalio import activity

from temporal_version.messages import Tries

BURST = 0.02
"""Seconds in which several beats become one."""


class Pulse:
    """The heartbeat of one attempt, and what it carries home."""

    def __init__(self, tries: Tries, *, interval: float, progress_timeout: float | None) -> None:
        self.tries = tries
        self._interval = interval
        self._progress_timeout = progress_timeout
        self._loop = asyncio.get_running_loop()
        self._beaten = asyncio.Event()

    def beat(self, detail: JsonValue) -> None:
        """The effect made progress; `detail` is the checkpoint of the next attempt."""
        self.tries = self.tries.model_copy(update={"checkpoint": detail})
        self._loop.call_soon_threadsafe(self._beaten.set)

    def send(self) -> None:
        """Hand the newest details to the SDK, which throttles. On failure they ride along."""
        activity.heartbeat(self.tries)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Beat while the body runs."""
        task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _run(self) -> None:
        progress_at = self._loop.time()
        while True:
            try:
                async with asyncio.timeout(self._interval):
                    await self._beaten.wait()
            except TimeoutError:
                silent = self._loop.time() - progress_at
                if self._progress_timeout is not None and silent > self._progress_timeout:
                    continue
            else:
                progress_at = self._loop.time()
                await asyncio.sleep(BURST)
                self._beaten.clear()
            self.send()
