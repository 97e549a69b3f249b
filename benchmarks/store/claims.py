"""Claims through our own code: how fast, how evenly, and how they fare under a held snapshot.

Where several clients claim at once, each is a worker of its own, with its own row, marks and pool,
as worker processes are: none of them ever claims twice at a time.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from benchmarks.store.backlog import KIND
from benchmarks.timing import Timing
from hand_rolled.claim import Claimed, Claims
from hand_rolled.database import Database
from hand_rolled.fast.claims import FastClaims
from hand_rolled.settings import Settings, read_settings
from hand_rolled.worker import REGISTER
from two_workers import engine_plugin

WORKER = "bench-1"  # the first to be registered
WARM = 20  # claims that fill the caches and are not counted

Claim = Callable[[int], Awaitable[list[Claimed]]]


@asynccontextmanager
async def claiming(url: str, env: Mapping[str, str]) -> AsyncIterator[Claim]:
    """A registered worker's claim, on a migrated database: `await claim(want)`."""
    async with workers_claiming(url, env, 1) as [claim]:
        yield claim


@asynccontextmanager
async def workers_claiming(
    url: str, env: Mapping[str, str], workers: int
) -> AsyncIterator[list[Claim]]:
    """The claims of so many registered workers, on a migrated database."""
    settings = read_settings({**env, "DATABASE_URL": url})
    await engine_plugin("hand_rolled").prepare(settings)
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(_registered(settings, f"bench-{number}"))
            for number in range(1, workers + 1)
        ]


@asynccontextmanager
async def _registered(settings: Settings, owner: str) -> AsyncIterator[Claim]:
    async with Database(settings, application=owner).opened() as database:
        await database.fetch(
            REGISTER,
            owner=owner,
            process=owner,
            host="bench",
            pid=0,
            kinds=[KIND],
            versions=["1"],
            concurrency=1,
        )
        claims = (FastClaims if settings.fast else Claims)(database, owner)
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


async def claim_rate(claims: Sequence[Claim], *, seconds: float) -> float:
    """Runs claimed per second by these workers at once, one at a time each."""
    began = time.perf_counter()
    done = 0

    async def client(claim: Claim) -> None:
        nonlocal done
        while time.perf_counter() - began < seconds:
            claimed = await claim(1)  # not inside the +=, which would read `done` before it
            done += len(claimed)

    async with asyncio.TaskGroup() as group:
        for claim in claims:
            group.create_task(client(claim))
    return done / (time.perf_counter() - began)


async def all_claimed(claims: Sequence[Claim], count: int, *, batch: int) -> Timing:
    """`count` runs claimed by these workers at once, `batch` of them per claim.

    Raises `RuntimeError` if a claim finds fewer.
    """
    turns = iter(range(count // batch))
    short = 0

    async def client(claim: Claim) -> None:
        nonlocal short
        for _ in turns:
            claimed = await claim(batch)
            short += batch - len(claimed)

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for claim in claims:
            group.create_task(client(claim))
    timing = Timing(count // batch * batch, time.perf_counter() - began)
    if short:
        raise RuntimeError(f"the backlog ran out: {short} of {timing.count} runs were missing")
    return timing
