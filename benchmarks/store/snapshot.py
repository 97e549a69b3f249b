"""Claims while another session holds a snapshot: a backup, a report, a forgotten transaction.

As long as the snapshot lives, no dead version of a row may be removed, so every claim has to step
over more of them: those in the queue's index, and with limits on those of the counters.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import psycopg

from benchmarks.databases import Server
from benchmarks.peers.clock import connected
from benchmarks.store.backlog import fill
from benchmarks.store.claims import claim_rate, workers_claiming
from two_workers import Limits, engine_plugin

CLIENTS = 4
PENDING = 200_000
TENANTS = 20
NEVER_REACHED = Limits(max_active=10_000_000, max_active_per_tenant=10_000_000)


@dataclass(frozen=True)
class Held:
    """Claims per second before the snapshot, and at the end of the time it was held."""

    undisturbed: float
    disturbed: float


class Turns:
    """Cases that wait together for their snapshots to grow old, but are measured one by one."""

    def __init__(self, cases: int) -> None:
        self._all = asyncio.Barrier(cases)
        self._measuring = asyncio.Lock()

    async def alone(self, measure: Callable[[], Awaitable[float]]) -> float:
        """What it measures while all other cases stand still."""
        async with self._all, self._measuring:
            found = await measure()
        await self._all.wait()
        return found


async def under_snapshot(
    server: Server,
    env: Mapping[str, str],
    turns: Turns,
    *,
    limits: bool,
    hold: float,
    window: float,
) -> Held:
    """Hold a snapshot for `hold` seconds and longer; rates are over `window` seconds."""
    async with server.database() as url, workers_claiming(url, env, CLIENTS) as claims:
        async with connected(url) as conn:
            await fill(conn, pending=PENDING, tenants=TENANTS)
        if limits:
            plugin = engine_plugin("hand_rolled")
            async with plugin.connect(plugin.settings({"DATABASE_URL": url})) as engine:
                await engine.set_limits(NEVER_REACHED)
        await claim_rate(claims, seconds=window / 3)  # warm
        undisturbed = await turns.alone(lambda: claim_rate(claims, seconds=window))
        async with _snapshot(url):
            began = time.perf_counter()
            while (left := hold - window - (time.perf_counter() - began)) > 0:
                await claim_rate(claims, seconds=min(left, window))
            disturbed = await turns.alone(lambda: claim_rate(claims, seconds=window))
        return Held(undisturbed, disturbed)


@asynccontextmanager
async def _snapshot(url: str) -> AsyncIterator[None]:
    async with await psycopg.AsyncConnection.connect(url) as conn:
        await conn.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
        await conn.execute("SELECT count(*) FROM limits")
        yield
        await asyncio.shield(conn.rollback())
