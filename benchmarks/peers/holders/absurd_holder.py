"""Absurd: a claim ends unless a checkpoint or `heartbeat()` extends it; writes are fenced.

`heartbeat` (seconds) lets the step call `ctx.heartbeat()` so often, which also tells it that the
task was cancelled or taken over; without it nothing does before the step's end. The other settings
are those of `start_worker`. A client claims its next batch when the last one is done, so a worker
process gets several.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from absurd_sdk import AsyncAbsurd

from benchmarks.ownership.holding import Hold, hold
from benchmarks.peers.absurd_peer import CLIENTS, prepare
from benchmarks.peers.holders import Client, Holder, Settings

QUEUE = "bench"


class _Client(Client):
    def __init__(self, app: AsyncAbsurd) -> None:
        self._app = app

    async def start(self, step: Hold) -> str:
        spawned = await self._app.spawn("hold", step.model_dump(), queue=QUEUE)
        return str(spawned["task_id"])

    async def cancel(self, run: str) -> None:
        await self._app.cancel_task(run)

    async def outcome(self, run: str) -> str | None:
        found = await self._app.fetch_task_result(run)
        return str(found.result) if found is not None and found.state == "completed" else None


@asynccontextmanager
async def connect(url: str, settings: Settings) -> AsyncIterator[Client]:
    """A client of an empty database."""
    await prepare(url)
    app = AsyncAbsurd(url, queue_name=QUEUE)
    try:
        yield _Client(app)
    finally:
        await app.close()


async def work(url: str, settings: Settings, concurrency: int) -> None:
    """A worker of up to eight clients."""
    options = dict(settings)
    every = options.pop("heartbeat", None)
    clients = min(CLIENTS, concurrency)
    apps = [AsyncAbsurd(url, queue_name=QUEUE) for _ in range(clients)]
    for app in apps:
        _register(app, every)
    async with asyncio.TaskGroup() as group:
        for app in apps:
            group.create_task(app.start_worker(concurrency=-(-concurrency // clients), **options))


def _register(app: AsyncAbsurd, every: float | None) -> None:
    @app.register_task(name="hold")
    async def _task(params: Any, context: Any) -> str:
        beat = None if every is None else _beating(context, every)

        async def step() -> str:
            return await hold(Hold(**params), str(context.task_id), beat)

        held: str = await context.step("hold", step)
        return held


def _beating(context: Any, every: float) -> Callable[[], Awaitable[None]]:
    last = time.monotonic()

    async def beat() -> None:
        nonlocal last
        if time.monotonic() - last >= every:
            last = time.monotonic()
            await context.heartbeat()

    return beat


HOLDER = Holder(connect, work)
