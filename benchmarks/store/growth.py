"""How cost grows: one curve each for the backlog, the claiming clients and the runs renewed."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from datetime import timedelta

from benchmarks.peers.clock import connected
from benchmarks.store.backlog import fill
from benchmarks.store.claims import (
    WORKER,
    Claim,
    claim_rate,
    claiming,
    median_latency,
    workers_claiming,
)
from hand_rolled.heartbeat import HEARTBEAT

Curve = list[tuple[float, float]]
CLAIMS = 200  # per point
BEATS = 15  # per point


async def by_backlog(url: str, backlogs: Sequence[int]) -> Curve:
    """Milliseconds of one claim, by the number of pending runs."""
    found, filled = [], 0
    async with claiming(url, {}) as claim, connected(url) as conn:
        for pending in backlogs:
            await fill(conn, first=filled + 1, pending=pending - filled)
            filled = pending
            found.append((float(pending), await median_latency(claim, CLAIMS) * 1e3))
    return found


async def by_clients(url: str, clients: Sequence[int], seconds: float) -> Curve:
    """Claims of one run per second, by the number of clients that claim at once."""
    async with workers_claiming(url, {}, max(clients)) as claims:
        async with connected(url) as conn:
            await fill(conn, pending=200_000)
        return [(float(n), await claim_rate(claims[:n], seconds=seconds)) for n in clients]


async def by_renewals(url: str, renewals: Sequence[int]) -> Curve:
    """Milliseconds of one heartbeat, by the number of runs that it renews."""
    async with claiming(url, {}) as claim:
        async with connected(url) as conn:
            await fill(conn, pending=sum(renewals))
        return [(float(n), await _heartbeat(url, claim, n) * 1e3) for n in renewals]


async def _heartbeat(url: str, claim: Claim, runs: int) -> float:
    """Median seconds of a heartbeat for so many runs, claimed here."""
    held = await claim(runs)
    values = {
        "worker": WORKER,
        "run_ids": [one.run_id for one in held],
        "generations": [one.generation for one in held],
        "ttl": timedelta(seconds=60),
    }
    found = []
    async with connected(url) as conn:
        for _ in range(BEATS):
            began = time.perf_counter()
            rows = await (await conn.execute(HEARTBEAT, values)).fetchall()
            found.append(time.perf_counter() - began)
            if len(rows) != runs:
                raise RuntimeError(f"expected {runs} renewals, found {len(rows)}")
    return statistics.median(found)
