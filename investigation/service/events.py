"""Progress as server-sent events: what changed about one run, until it ends.

    event: run     the whole run, whenever something about it changed, and the service's clock
    event: step    a newly recorded step; its id is the step's key
    event: end     the run has ended; nothing follows

A client that lost the connection asks again and is told everything again: the steps of a fan-out
are recorded in any order, so that "go on after this one" would leave some out.

The service asks the engine about twice a second. A step is told once it is recorded; tokens of a
model's reply are not streamed, because a step is recorded whole or not at all.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from fastapi import HTTPException
from fastapi.sse import ServerSentEvent
from pydantic import BaseModel

from two_workers import Engine, RunView


class Now(BaseModel):
    """A run, and the time at which the service saw it: a browser's clock may differ."""

    run: RunView
    now: datetime


async def follow(engine: Engine, run_id: str, *, interval: float) -> AsyncIterator[ServerSentEvent]:
    """The events of a run, looked for every `interval` seconds."""
    shown: RunView | None = None
    told: set[str] = set()
    while True:
        view = await engine.get(run_id)  # before the steps: a final run's steps are complete
        if view != shown:
            shown = view
            yield ServerSentEvent(event="run", data=Now(run=view, now=datetime.now(UTC)))
        for record in await engine.steps(run_id):
            if record.key not in told:
                told.add(record.key)
                yield ServerSentEvent(event="step", data=record, id=record.key)
        if view.state.is_final:
            yield ServerSentEvent(event="end", data=view.state)
            return
        await asyncio.sleep(interval)


class Streams:
    """Counts the open streams of each tenant."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: Counter[str | None] = Counter()

    @contextmanager
    def one(self, tenant: str | None) -> Iterator[None]:
        """Hold one stream. Raises 429 when the tenant has too many."""
        if self._open[tenant] >= self._most:
            raise HTTPException(429, f"{self._most} event streams are open, which is the limit")
        self._open[tenant] += 1
        try:
            yield
        finally:
            self._open[tenant] -= 1
