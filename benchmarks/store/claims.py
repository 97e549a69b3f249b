"""Claims through our own code: how fast, how evenly, and how they fare under a held snapshot."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from benchmarks.peers.clock import connected
from benchmarks.store.backlog import KIND
from hand_rolled.claim import Claimed, Claims
from hand_rolled.database import Database
from hand_rolled.fast.claims import FastClaims
from hand_rolled.settings import read_settings
from two_workers import engine_plugin

REGISTER = """
INSERT INTO workers (worker_id, process, host, pid, kinds, versions, concurrency)
VALUES ('bench', 'bench', 'bench', 0, '{bench}', '{1}', 1)
"""

WARM = 20  # claims that fill the caches and are not counted

Claim = Callable[[int], Awaitable[list[Claimed]]]


@asynccontextmanager
async def claiming(url: str, env: Mapping[str, str]) -> AsyncIterator[Claim]:
    """A registered worker's claim, on a migrated database: `await claim(want)`."""
    settings = read_settings({**env, "DATABASE_URL": url})
    await engine_plugin("hand_rolled").prepare(settings)
    async with connected(url) as conn:
        await conn.execute(REGISTER)
    async with Database(settings, application="bench").opened() as database:
        claims = (FastClaims if settings.fast else Claims)(database, "bench")
        yield lambda want: claims.claim(KIND, "1", want=want)


async def latency(claim: Claim) -> float:
    """Seconds of one claim of one run. Raises `RuntimeError` if it comes back empty."""
    began = time.perf_counter()
    claimed = await claim(1)
    seconds = time.perf_counter() - began
    if not claimed:
        raise RuntimeError("the backlog ran out: it was meant to be larger")
    return seconds


async def median_latency(claim: Claim, count: int) -> float:
    """The median of `count` claims, one after the other, after some to warm up."""
    found = [await latency(claim) for _ in range(WARM + count)]
    return statistics.median(found[WARM:])


async def in_turns(one: Claim, other: Claim, pairs: int) -> tuple[list[float], list[float]]:
    """Latencies of two claims, taken in turns so that noise meets both."""
    found = [(await latency(one), await latency(other)) for _ in range(WARM + pairs)]
    return [a for a, _ in found[WARM:]], [b for _, b in found[WARM:]]


async def claim_rate(claim: Claim, *, clients: int, batch: int, seconds: float) -> float:
    """Runs claimed per second by so many concurrent clients."""
    began = time.perf_counter()
    done = 0

    async def client() -> None:
        nonlocal done
        while time.perf_counter() - began < seconds:
            claimed = await claim(batch)  # not inside the +=, which would read `done` before it
            done += len(claimed)

    async with asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(client())
    return done / (time.perf_counter() - began)
