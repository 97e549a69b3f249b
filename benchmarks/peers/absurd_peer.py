"""Absurd: durable tasks by stored procedures, whose schema its command-line tool brings.

One client is one connection, so a worker process gets eight of them: faster than one with the
same concurrency.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import absurdctl
import psycopg
from absurd_sdk import AsyncAbsurd

from benchmarks.peers import ABSURD_SQL, Peer
from benchmarks.peers.clock import by_clients, connected, until_done
from benchmarks.timing import FirstStart, Timing
from two_workers import BadInput

ALL_DONE = "SELECT NOT EXISTS (SELECT FROM absurd.t_bench WHERE state <> 'completed')"
CLIENTS = 8
ENQUEUERS = 16
STEPS = 10


async def noop(url: str, count: int) -> Timing:
    """Tasks of one step per second."""
    return await _work(url, count, steps=1, concurrency=50)


async def steps(url: str, count: int) -> Timing:
    """Steps per second: `count` steps, ten to a task."""
    timing = await _work(url, count // STEPS, steps=STEPS, concurrency=25)
    return Timing(timing.count * STEPS, timing.seconds)


async def prepare(url: str) -> None:
    """The schema, and the queue "bench". Raises `BadInput` if the user named an unfit file."""
    try:
        async with connected(url) as conn:
            await conn.execute(await asyncio.to_thread(_schema))
        app = AsyncAbsurd(url, queue_name="bench")
        await app.create_queue("bench")
        await app.close()
    except psycopg.Error as error:
        named = os.environ.get(ABSURD_SQL)
        if named is None:
            raise
        said = error.diag.message_primary or str(error)
        raise BadInput(f"--absurd-sql {named} is no schema of Absurd: {said}") from error


def _schema() -> bytes:
    """A file that the user named, else the schema of the installed tool. Executed as it is."""
    named = os.environ.get(ABSURD_SQL)
    found: str = absurdctl.BUNDLED_SCHEMA_SQL
    return found.encode() if named is None else Path(named).read_bytes()


async def _work(url: str, count: int, *, steps: int, concurrency: int) -> Timing:
    await prepare(url)
    start = FirstStart()
    apps = [AsyncAbsurd(url, queue_name="bench") for _ in range(CLIENTS)]
    for app in apps:
        _register(app, start)
    await by_clients(CLIENTS, count, _spawner(apps, {"steps": steps}))
    workers = asyncio.gather(
        *(app.start_worker(concurrency=concurrency, poll_interval=0.05) for app in apps)
    )

    async def work() -> None:
        await workers

    return await until_done(url, ALL_DONE, start, count, work())


def _register(app: AsyncAbsurd, start: FirstStart) -> None:
    @app.register_task(name="work")
    async def _task(params: Any, context: Any) -> int:
        start.mark()
        for number in range(params["steps"]):
            await context.step(f"step-{number}", _nothing)
        return 0


async def _nothing() -> int:
    return 0


def _spawner(apps: list[AsyncAbsurd], params: dict[str, int]) -> Any:
    free = list(apps)

    async def spawn(number: int) -> None:
        app = free.pop()  # as many clients as callers: one is always free
        try:
            await app.spawn("work", params)
        finally:
            free.append(app)

    return spawn


async def enqueue(url: str, count: int) -> Timing:
    """Single `spawn` by 16 concurrent clients, each with its connection."""
    await prepare(url)
    apps = [AsyncAbsurd(url, queue_name="bench") for _ in range(ENQUEUERS)]
    for app in apps:
        _register(app, FirstStart())
    return await by_clients(ENQUEUERS, count, _spawner(apps, {"steps": 1}))


PEER = Peer(
    name="absurd",
    packages=("absurd-sdk", "absurdctl", "psycopg"),
    settings="8 clients (8 connections), concurrency 50 each (25 for steps); enqueue: 16 clients",
    measures={"noop": noop, "steps": steps, "enqueue": enqueue},
)
