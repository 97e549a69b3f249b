"""DBOS: durable workflows. Input, every step and the output are stored; its writes are fenced."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dbos import DBOS, DBOSClient, EnqueueOptions, run_dbos_database_migrations

from benchmarks.peers import Peer
from benchmarks.peers.clock import by_clients, until_done
from benchmarks.timing import FirstStart, Timing

ALL_DONE = (
    "SELECT NOT EXISTS (SELECT FROM dbos.workflow_status WHERE status IN ('ENQUEUED', 'PENDING'))"
)
CLIENTS = 16
STEPS = 10
WORK = EnqueueOptions(workflow_name="work", queue_name="bench")

_start = FirstStart()


@DBOS.step(name="nothing")
async def nothing(number: int) -> int:
    """A step that does nothing, and is recorded."""
    return number


@DBOS.workflow(name="work")
async def work(steps: int) -> int:
    """A workflow of so many steps."""
    _start.mark()
    for number in range(steps):
        await nothing(number)
    return steps


async def noop(url: str, count: int) -> Timing:
    """Workflows of one step per second."""
    return await _work(url, count, steps=1)


async def steps(url: str, count: int) -> Timing:
    """Steps per second: `count` steps, ten to a workflow."""
    timing = await _work(url, count // STEPS, steps=STEPS)
    return Timing(timing.count * STEPS, timing.seconds)


async def _work(url: str, count: int, *, steps: int) -> Timing:
    await asyncio.to_thread(run_dbos_database_migrations, system_database_url=url)
    client = DBOSClient(system_database_url=url, system_database_pool_size=CLIENTS)
    options = EnqueueOptions(**WORK, app_version="bench")
    await by_clients(CLIENTS, count, lambda n: client.enqueue_async(options, steps))
    client.destroy()
    async with _launched(url):
        return await until_done(url, ALL_DONE, _start, count, asyncio.Event().wait())


@asynccontextmanager
async def _launched(url: str) -> AsyncIterator[None]:
    DBOS(
        config={
            "name": "bench",
            "system_database_url": url,
            "application_version": "bench",
            "sys_db_pool_size": 8,
            "log_level": "ERROR",
        }
    )
    DBOS.launch()
    await DBOS.register_queue_async("bench", worker_concurrency=100, polling_interval_sec=0.05)
    try:
        yield
    finally:
        DBOS.destroy()


async def enqueue(url: str, count: int) -> Timing:
    """Single `enqueue_async` by 16 concurrent clients over a pool of 16."""
    await asyncio.to_thread(run_dbos_database_migrations, system_database_url=url)
    client = DBOSClient(system_database_url=url, system_database_pool_size=CLIENTS)
    try:
        return await by_clients(CLIENTS, count, lambda n: client.enqueue_async(WORK, 1))
    finally:
        client.destroy()


PEER = Peer(
    name="dbos",
    packages=("dbos", "sqlalchemy"),
    settings="worker_concurrency 100, polling 0.05 s, sys_db_pool_size 8; enqueue: pool of 16",
    measures={"noop": noop, "steps": steps, "enqueue": enqueue},
)
