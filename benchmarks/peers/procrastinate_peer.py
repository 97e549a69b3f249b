"""Procrastinate: a queue. One job per claim, by a PL/pgSQL function; one statement per finish.

The statistics are refreshed after the bulk enqueue: with stale ones its claim takes another plan
and becomes slower as the queue grows.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from procrastinate import App, PsycopgConnector

from benchmarks.peers import Peer
from benchmarks.peers.clock import by_clients, connected, in_bulk, until_done
from benchmarks.timing import FirstStart, Timing

ALL_DONE = "SELECT NOT EXISTS (SELECT FROM procrastinate_jobs WHERE status IN ('todo', 'doing'))"
CLIENTS = 16
BULK = 1_000
CONCURRENCY = 20


@asynccontextmanager
async def _opened(url: str, pool: int) -> AsyncIterator[App]:
    app = App(connector=PsycopgConnector(conninfo=url, min_size=pool, max_size=pool))
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        yield app


async def noop(url: str, count: int) -> Timing:
    """Jobs per second of one worker."""
    start = FirstStart()
    async with _opened(url, 4) as app:

        @app.task(name="noop")
        async def _noop() -> None:
            start.mark()

        await _noop.batch_defer_async(*({} for _ in range(count)))
        async with connected(url) as conn:
            await conn.execute("VACUUM ANALYZE procrastinate_jobs")
        worker = app.run_worker_async(concurrency=CONCURRENCY, install_signal_handlers=False)
        return await until_done(url, ALL_DONE, start, count, worker)


async def enqueue(url: str, count: int) -> Timing:
    """Single `defer_async` by 16 concurrent clients over a pool of 16."""
    async with _opened(url, CLIENTS) as app:
        job = app.configure_task("noop")
        return await by_clients(CLIENTS, count, lambda n: job.defer_async())


async def enqueue_bulk(url: str, count: int) -> Timing:
    """`batch_defer_async` with 1,000 jobs at a time."""
    async with _opened(url, CLIENTS) as app:
        job = app.configure_task("noop")
        return await in_bulk(BULK, count, lambda some: job.batch_defer_async(*({} for _ in some)))


PEER = Peer(
    name="procrastinate",
    packages=("procrastinate", "psycopg", "psycopg-pool"),
    settings="concurrency 20, pool of 4, VACUUM ANALYZE after the enqueue; enqueue: pool of 16",
    measures={"noop": noop, "enqueue": enqueue, "enqueue_bulk": enqueue_bulk},
)
