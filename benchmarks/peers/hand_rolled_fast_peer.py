"""Our PostgreSQL store with its fast path: group commit of records and ends, claims in batches."""

from __future__ import annotations

from benchmarks.peers import Peer
from benchmarks.peers.clock import by_clients, connected, in_bulk
from benchmarks.peers.hand_rolled_peer import CLIENTS, STEPS, prepared, run_of, worked
from benchmarks.store.backlog import fill
from benchmarks.store.claims import all_claimed, workers_claiming
from benchmarks.timing import Timing

CLAIMERS = 4
BULK = 1_000
FAST = {"HAND_ROLLED_FAST": "true"}
WORKER = {**FAST, "HAND_ROLLED_CONCURRENCY": "500"}


async def noop(url: str, count: int) -> Timing:
    """Runs of one recorded step per second."""
    return await worked(url, WORKER, count, 1)


async def steps(url: str, count: int) -> Timing:
    """Steps per second: `count` steps, ten to a run."""
    timing = await worked(url, WORKER, count // STEPS, STEPS)
    return Timing(timing.count * STEPS, timing.seconds)


async def enqueue(url: str, count: int) -> Timing:
    """Single `start` by 16 coroutines of one process."""
    async with prepared(url, FAST) as (_, engine):
        return await by_clients(CLIENTS, count, lambda n: engine.start(run_of(n, 1)))


async def enqueue_bulk(url: str, count: int) -> Timing:
    """`start_many` with 1,000 runs at a time."""
    async with prepared(url, FAST) as (_, engine):
        return await in_bulk(
            BULK, count, lambda some: engine.start_many([run_of(n, 1) for n in some])
        )


async def claim_1(url: str, count: int) -> Timing:
    """Claims of one run at a time, by four workers."""
    return await _claims(url, count, batch=1)


async def claim_50(url: str, count: int) -> Timing:
    """Claims of fifty at a time, by four workers, counted in runs."""
    return await _claims(url, count, batch=50)


async def _claims(url: str, count: int, *, batch: int) -> Timing:
    async with workers_claiming(url, FAST, CLAIMERS) as claims:
        async with connected(url) as conn:
            await fill(conn, pending=count + batch * CLAIMERS)
        return await all_claimed(claims, count, batch=batch)


PEER = Peer(
    name="hand_rolled+fast",
    packages=("psycopg",),
    settings=(
        "HAND_ROLLED_FAST=true, concurrency 500, heartbeats on; claims: four workers in one "
        "process, each with its own row and pool"
    ),
    measures={
        "noop": noop,
        "steps": steps,
        "enqueue": enqueue,
        "enqueue_bulk": enqueue_bulk,
        "claim_1": claim_1,
        "claim_50": claim_50,
    },
)
