"""PgQueuer: a queue. A job is claimed in a batch; a finished one is deleted and logged in a batch.

Its buffer flushes at `batch_size` finished jobs or after 0.1 s, so a crash can repeat a batch.
A completion names the job only: a paused worker's late completion is accepted.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
from pgqueuer import AsyncpgDriver, AsyncpgPoolDriver, Job, PgQueuer, Queries

from benchmarks.peers import Peer
from benchmarks.peers.clock import by_clients, in_bulk, until_done
from benchmarks.timing import FirstStart, Timing

ALL_DONE = "SELECT NOT EXISTS (SELECT FROM pgqueuer)"
CLIENTS = 16
BULK = 1_000


async def noop(url: str, count: int) -> Timing:
    """Jobs per second at the default batch size of 10."""
    return await _work(url, count, batch_size=10)


async def noop_batch_500(url: str, count: int) -> Timing:
    """Jobs per second in batches of 500: fast, and a crash repeats up to 500 jobs."""
    return await _work(url, count, batch_size=500)


async def _work(url: str, count: int, *, batch_size: int) -> Timing:
    start = FirstStart()
    connection = await asyncpg.connect(url)
    queries = Queries(AsyncpgDriver(connection))
    await queries.install()
    await queries.enqueue(["noop"] * count, [None] * count, [0] * count)
    app = PgQueuer.from_asyncpg_connection(connection)

    @app.entrypoint("noop")
    async def _noop(job: Job) -> None:
        start.mark()

    return await until_done(url, ALL_DONE, start, count, app.run(batch_size=batch_size))


@asynccontextmanager
async def _client(url: str) -> AsyncIterator[Queries]:
    async with asyncpg.create_pool(url, min_size=CLIENTS, max_size=CLIENTS) as pool:
        queries = Queries(AsyncpgPoolDriver(pool))
        await queries.install()
        yield queries


async def enqueue(url: str, count: int) -> Timing:
    """Single enqueues by 16 concurrent clients over a pool of 16."""
    async with _client(url) as queries:
        return await by_clients(CLIENTS, count, lambda n: queries.enqueue("noop", None))


async def enqueue_bulk(url: str, count: int) -> Timing:
    """`enqueue([...])` with 1,000 jobs at a time."""
    async with _client(url) as queries:
        return await in_bulk(
            BULK,
            count,
            lambda some: queries.enqueue(["noop"] * len(some), [None] * len(some), [0] * len(some)),
        )


PEER = Peer(
    name="pgqueuer",
    packages=("pgqueuer", "asyncpg", "uvloop"),
    settings="asyncpg, one connection, uvloop, batch_size 10 (default); enqueue: pool of 16",
    measures={
        "noop": noop,
        "noop_batch_500": noop_batch_500,
        "enqueue": enqueue,
        "enqueue_bulk": enqueue_bulk,
    },
)
