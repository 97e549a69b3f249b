"""Our PostgreSQL store as it is read: a statement per claim, recorded step and finish, fenced."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from benchmarks.nothing import START
from benchmarks.peers import Peer
from benchmarks.peers.clock import by_clients, connected, in_bulk, until_done
from benchmarks.timing import Timing
from benchmarks.workload import APP
from hand_rolled.engine import HandRolledEngine
from hand_rolled.plugin import PLUGIN
from two_workers import Run
from two_workers.engines import new_worker_id

SETTINGS = {"HAND_ROLLED_CONCURRENCY": "100", "HAND_ROLLED_POOL_SIZE": "8"}
ALL_DONE = """
SELECT NOT EXISTS (SELECT FROM runs WHERE status = 'pending')
   AND NOT EXISTS (SELECT FROM runs WHERE status = 'running')
"""
CLIENTS = 16
BULK = 1_000
STEPS = 10


@asynccontextmanager
async def prepared(url: str, env: Mapping[str, str]) -> AsyncIterator[tuple[Any, HandRolledEngine]]:
    """Settings and a client, over a migrated database."""
    settings = PLUGIN.settings({**env, "DATABASE_URL": url})
    await PLUGIN.prepare(settings)
    async with PLUGIN.connect(settings) as engine:
        yield settings, engine


async def worked(url: str, env: Mapping[str, str], runs: int, steps: int) -> Timing:
    """`runs` runs of so many steps by one worker. Raises `RuntimeError` unless all succeeded."""
    async with prepared(url, env) as (settings, engine):
        await in_bulk(BULK, runs, lambda some: engine.start_many([run_of(n, steps) for n in some]))
        async with connected(url) as conn:
            await conn.execute("VACUUM ANALYZE runs")
        worker = PLUGIN.worker(settings, [APP], worker_id=new_worker_id())
        timing = await until_done(url, ALL_DONE, START, runs, worker.run(asyncio.Event()))
    await _all_succeeded(url, runs, steps)
    return timing


async def _all_succeeded(url: str, runs: int, steps: int) -> None:
    async with connected(url) as conn:
        cursor = await conn.execute(
            "SELECT count(*) FILTER (WHERE status = 'succeeded'), (SELECT count(*) FROM journal)"
            " FROM runs"
        )
        found = await cursor.fetchone()
    if found != (runs, runs * steps):
        raise RuntimeError(f"expected {runs} successes and {runs * steps} steps, found {found}")


def run_of(number: int, steps: int) -> Run:
    """A run of so many steps."""
    return Run(run_id=f"bench-{number}", kind=APP.kind, payload=steps)


async def noop(url: str, count: int) -> Timing:
    """Runs of one recorded step per second."""
    return await worked(url, SETTINGS, count, 1)


async def steps(url: str, count: int) -> Timing:
    """Steps per second: `count` steps, ten to a run."""
    timing = await worked(url, SETTINGS, count // STEPS, STEPS)
    return Timing(timing.count * STEPS, timing.seconds)


async def enqueue(url: str, count: int) -> Timing:
    """Single `start` by 16 coroutines of one process over a pool of 16."""
    async with prepared(url, {"HAND_ROLLED_POOL_SIZE": str(CLIENTS)}) as (_, engine):
        return await by_clients(CLIENTS, count, lambda n: engine.start(run_of(n, 1)))


PEER = Peer(
    name="hand_rolled",
    packages=("psycopg", "psycopg-pool"),
    settings="concurrency 100, pool of 8, heartbeats on; enqueue: pool of 16",
    measures={"noop": noop, "steps": steps, "enqueue": enqueue},
)
