"""Rows about the store alone, the world's capacity and a worker's memory."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from benchmarks import targets
from benchmarks.bench import UNDISTURBED, Bench
from benchmarks.ownership.holding import Hold
from benchmarks.ownership.scene import Scene
from benchmarks.peers.clock import connected
from benchmarks.peers.hand_rolled_fast_peer import FAST
from benchmarks.ratios import ratio_of_medians
from benchmarks.results import Estimate
from benchmarks.rows.contenders import DEFAULTS, OURS, contending
from benchmarks.store.backlog import fill
from benchmarks.store.claims import WARM, Claim, claiming, in_turns
from benchmarks.store.growth import by_backlog, by_clients, by_renewals
from benchmarks.store.snapshot import Turns, under_snapshot
from comparison.world.bench import CONNECTIONS, measure

WAITING_RUNS = 500


async def flat_claims(bench: Bench) -> None:
    """One claim among many rows over one claim among few, taken in turns."""
    many, pairs = bench.size(1_000_000, 100_000), bench.size(400, 200)
    bench.say(f"filling {many:,} pending and {many:,} finished runs ...")
    async with (
        _claiming(bench, pending=many, finished=many) as among_many,
        _claiming(bench, pending=1_000 + WARM + pairs) as among_few,
    ):
        large, small = await in_turns(among_many, among_few, pairs)
    note = (
        f"{many:,} pending + {many:,} finished against 1,000 pending; p50 "
        f"{statistics.median(large) * 1e3:.2f} and {statistics.median(small) * 1e3:.2f} ms; "
        f"{UNDISTURBED}"
    )
    figure = ratio_of_medians(large, small)
    bench.found("claim p50, large over small", "one claim", figure, targets.CLAIM_FLAT, note)


@asynccontextmanager
async def _claiming(bench: Bench, *, pending: int, finished: int = 0) -> AsyncIterator[Claim]:
    """A claim over a fresh database with so many runs in it."""
    async with bench.server.database() as url, claiming(url, {}) as claim:
        async with connected(url) as conn:
            await fill(conn, pending=pending, finished=finished)
        yield claim


async def snapshot(bench: Bench) -> None:
    """The claim rate under a held snapshot over the undisturbed one.

    The snapshots of both cases grow old at the same time, and each is measured alone.
    """
    hold, window = bench.size(60, 9), bench.size(10, 3)
    cases = (False, targets.SNAPSHOT_UNLIMITED), (True, targets.SNAPSHOT_LIMITED)
    turns = Turns(len(cases))
    async with asyncio.TaskGroup() as group:
        under_way = [
            group.create_task(
                under_snapshot(bench.server, FAST, turns, limits=limits, hold=hold, window=window)
            )
            for limits, _ in cases
        ]
    found = [task.result() for task in under_way]
    for (limits, target), held in zip(cases, found, strict=True):
        figure = Estimate(value=held.disturbed / held.undisturbed, low=None, high=None, n=1)
        note = (
            f"held for {hold} s and longer; {held.disturbed:,.0f} in its last {window} s against "
            f"{held.undisturbed:,.0f} claims/s before; one run, no interval"
        )
        measure = f"group commit, limits {'set' if limits else 'unset'}"
        bench.found("claim rate under a held snapshot", measure, figure, target, note)


async def world(bench: Bench) -> None:
    """How many calls per second the comparison's ground truth can take."""
    seconds = bench.size(5, 2)
    figure = Estimate(value=await measure(seconds), low=None, high=None, n=1)
    note = (
        f"of the scripted model, for {seconds} s over {CONNECTIONS} kept-alive connections; each "
        "begin and end found in the ledger"
    )
    bench.found("world", "calls/s", figure, targets.WORLD_CALLS, note)


async def memory(bench: Bench) -> None:
    """Resident memory of a worker process that holds 500 runs whose steps wait."""
    async with (
        contending(bench, {OURS: DEFAULTS[OURS]}) as [ours],
        Scene.open(ours, bench.directory) as scene,
    ):
        worker = await scene.start_worker("worker", concurrency=WAITING_RUNS)
        await scene.occupied([worker], Hold(seconds=0))
        idle = await _resident_mb(worker.pid)
        step = Hold(seconds=600, tick=60)
        for run in [await scene.client.start(step) for _ in range(WAITING_RUNS)]:
            await scene.diary.begun(run)
        resident = await _resident_mb(worker.pid)
    figure = Estimate(value=resident, low=None, high=None, n=1)
    note = f"{WAITING_RUNS} runs in a step; {idle:.0f} MB before the first of them"
    bench.found("worker memory", "resident", figure, targets.MEMORY, note)


async def _resident_mb(pid: int) -> float:
    child = await asyncio.create_subprocess_exec(
        *("ps", "-o", "rss=", "-p", str(pid)), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await child.communicate()
    return int(output) / 1024


async def growth(bench: Bench) -> None:
    """How the cost grows: with the backlog, with the claiming clients, with the runs renewed."""
    backlogs = [1_000, 10_000, 100_000, *([] if bench.quick else [500_000])]
    async with bench.server.database() as url:
        bench.growth["claim p50, ms, by pending runs"] = await by_backlog(url, backlogs)
    async with bench.server.database() as url:
        bench.growth["claims/s, by claiming clients"] = await by_clients(
            url, [1, 2, 4, 8, 16, 32], bench.size(2, 1)
        )
    async with bench.server.database() as url:
        bench.growth["heartbeat p50, ms, by runs renewed"] = await by_renewals(
            url, [1, 10, 100, 500, 1_000, 2_000]
        )
    for title, points in bench.growth.items():
        bench.say(f"{title}: " + ", ".join(f"{x:,.0f} → {y:,.3g}" for x, y in points))
