"""An agent with two or three questions, effects to be steered, and a worker in this process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from pydantic import BaseModel

from hand_rolled.plugin import PLUGIN
from tests.hand_rolled.bench import Store
from two_workers import App, Call, Effect, Retry, Step, do, do_all

Perform = Callable[[Any, Call], Coroutine[Any, Any, Any]]


class Ask(Step[str]):
    text: str


class Count(Step[int]):
    text: str


class Question(BaseModel):
    text: str = ""


def app(agent: Any, perform: Perform, *, version: str = "1", **more: Any) -> App:
    quick = Retry(max_attempts=3, initial=0.02, backoff=1)
    effect = Effect(perform, retry=quick, **more)
    return App(kind="test", agent=agent, effects={Ask: effect, Count: effect}, version=version)


@asynccontextmanager
async def working(store: Store, served: App, **changes: Any) -> AsyncIterator[str]:
    """A worker in this process, stopped in order on leaving."""
    settings = store.database.settings.model_copy(update={"poll_interval": 0.1} | changes)
    stop = asyncio.Event()
    worker_id = f"worker-{time.monotonic_ns()}"
    worker = PLUGIN.worker(settings, [served], worker_id=worker_id)
    task = asyncio.create_task(worker.run(stop))
    try:
        yield worker_id
    finally:
        stop.set()
        await task


async def ask_twice(question: Question) -> list[str]:
    return [await do(Ask(text="one")), await do(Ask(text="two"))]


async def ask_together(question: Question) -> list[str]:
    return await do_all([Ask(text="one"), Ask(text="two"), Ask(text="three")])


class Held:
    """An effect that begins and then waits to be told."""

    def __init__(self) -> None:
        self.begun: asyncio.Queue[Call] = asyncio.Queue()
        self.go = asyncio.Event()
        self.cancelled_at: list[float] = []

    async def __call__(self, step: Ask, call: Call) -> str:
        self.begun.put_nowait(call)
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled_at.append(time.monotonic())
            raise
        return step.text


async def answer(step: Ask, call: Call) -> str:
    return step.text


async def in_state(store: Store, run_id: str, state: str) -> bool:
    return bool((await store.row(run_id))["status"] == state)
