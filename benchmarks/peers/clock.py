"""The clock of a throughput measurement: from the first handler's start until the database is done.

The start of a process, the connection and the filling of the queue are outside of it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, LiteralString

import psycopg

from benchmarks.timing import FirstStart, Timing

LOOK_EVERY = 0.01  # seconds between two looks at the database
PATIENCE = 120.0  # seconds after which a measurement is given up


async def until_done(
    url: str,
    is_done: LiteralString,
    start: FirstStart,
    count: int,
    worker: Coroutine[Any, Any, Any],
) -> Timing:
    """Let `worker` work until the query `is_done` says true, then end it.

    Raises `TimeoutError` after two minutes, and whatever the worker raises if it ends early.
    """
    working = asyncio.ensure_future(worker)
    given_up = threading.Event()
    # In a thread with a connection of its own: a busy loop must not delay the stop watch.
    looking = asyncio.ensure_future(asyncio.to_thread(_look, url, is_done, given_up))
    try:
        await asyncio.wait([working, looking], return_when=asyncio.FIRST_COMPLETED)
        if not looking.done():
            working.result()
            raise RuntimeError("the worker ended before its work did")
        end = looking.result()
    finally:
        given_up.set()
        working.cancel()
        await asyncio.gather(working, looking, return_exceptions=True)
    if start.at is None:
        raise RuntimeError("the database says done, but no handler ever began")
    return Timing(count, end - start.at)


def _look(url: str, is_done: LiteralString, given_up: threading.Event) -> float:
    """When the query said true."""
    deadline = time.perf_counter() + PATIENCE
    with psycopg.connect(url, autocommit=True) as conn:
        while time.perf_counter() < deadline:
            row = conn.execute(is_done).fetchone()
            if row is not None and row[0]:
                return time.perf_counter()
            if given_up.wait(LOOK_EVERY):
                break
    raise TimeoutError(f"not done after {PATIENCE:g} s")


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    """An autocommit connection."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as conn:
        yield conn


async def by_clients(clients: int, calls: int, one: Callable[[int], Awaitable[Any]]) -> Timing:
    """`calls` of `one` by so many clients that wait for their replies."""
    numbers = iter(range(calls))

    async def client() -> None:
        for number in numbers:
            await one(number)

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(client())
    return Timing(calls, time.perf_counter() - began)


async def in_bulk(size: int, count: int, many: Callable[[range], Awaitable[Any]]) -> Timing:
    """`count` units in calls of `size` at a time, one after the other."""
    began = time.perf_counter()
    for first in range(0, count, size):
        await many(range(first, min(first + size, count)))
    return Timing(count, time.perf_counter() - began)
