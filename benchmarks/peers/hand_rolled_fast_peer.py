"""Our PostgreSQL store with its fast path: group commit of records and ends, claims in batches."""

from __future__ import annotations

from benchmarks.peers import Peer
from benchmarks.peers.clock import by_clients
from benchmarks.peers.hand_rolled_peer import CLIENTS, STEPS, prepared, run_of, worked
from benchmarks.timing import Timing

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
    """Single `start` by 16 concurrent clients."""
    async with prepared(url, FAST) as (_, engine):
        return await by_clients(CLIENTS, count, lambda n: engine.start(run_of(n, 1)))


PEER = Peer(
    name="hand_rolled+fast",
    packages=("psycopg",),
    settings="HAND_ROLLED_FAST=true, concurrency 500, heartbeats on",
    measures={"noop": noop, "steps": steps, "enqueue": enqueue},
)
