"""Rows about throughput: contests in interleaved rounds."""

from __future__ import annotations

import itertools
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks import targets
from benchmarks.bench import UNDISTURBED, Bench
from benchmarks.peers import ABSURD_SQL
from benchmarks.results import Rounds
from benchmarks.rounds import Arena, Contest, Entry
from two_workers import engine_plugin

FAST, READABLE = "hand_rolled, group commit", "hand_rolled, as read"
PGQUEUER, PGQUEUER_500 = "PgQueuer, batch 10", "PgQueuer, batch 500"
DBOS, PROCRASTINATE, ABSURD = "DBOS", "procrastinate", "Absurd"
TEN_STEPS = f"ten steps to a run; {UNDISTURBED}"
COROUTINES = f"by 16 coroutines of one process; {UNDISTURBED}"


async def noop(bench: Bench) -> None:
    """Runs of one recorded step that does nothing; queues have no step to record."""
    entries = {
        FAST: Entry("hand_rolled+fast", "noop", bench.size(6_000, 3_000)),
        READABLE: Entry("hand_rolled", "noop", bench.size(500, 250)),
        PGQUEUER: Entry("pgqueuer", "noop", bench.size(6_000, 3_000)),
        DBOS: Entry("dbos", "noop", bench.size(400, 150)),
    }
    if not bench.quick:
        entries |= {
            PGQUEUER_500: Entry("pgqueuer", "noop_batch_500", 10_000),
            PROCRASTINATE: Entry("procrastinate", "noop", 400),
            ABSURD: _absurd(bench, "noop", 1_000),
        }
    found = await _held(bench, Contest("no-op runs", "runs/s", entries))
    bench.compared("no-op runs/s", found, FAST, PGQUEUER, targets.NOOP_PGQUEUER)
    bench.compared("no-op runs/s", found, FAST, DBOS, targets.NOOP_DBOS)
    if not bench.quick:
        bench.compared("no-op runs/s", found, FAST, ABSURD, targets.NOOP_ABSURD)
        bench.compared("no-op runs/s", found, FAST, PROCRASTINATE, None)
        bench.compared("no-op runs/s", found, FAST, PGQUEUER_500, None)
    _as_read(bench, "no-op runs/s", found)


async def steps(bench: Bench) -> None:
    """Runs of ten recorded steps each."""
    entries = {
        FAST: Entry("hand_rolled+fast", "steps", bench.size(2_000, 1_000)),
        READABLE: Entry("hand_rolled", "steps", bench.size(1_000, 500)),
        DBOS: Entry("dbos", "steps", bench.size(400, 300)),
    }
    if not bench.quick:
        entries[ABSURD] = _absurd(bench, "steps", 1_500)
    found = await _held(bench, Contest("durable steps", "steps/s", entries))
    row = "durable steps/s"
    bench.compared(row, found, FAST, DBOS, targets.STEPS_DBOS, under=TEN_STEPS)
    if not bench.quick:
        bench.compared(row, found, FAST, ABSURD, targets.STEPS_ABSURD, under=TEN_STEPS)
    _as_read(bench, row, found, under=TEN_STEPS)


async def enqueue(bench: Bench) -> None:
    """Single starts by 16 coroutines at once, and starts in calls of 1,000."""
    single = {
        FAST: Entry("hand_rolled+fast", "enqueue", bench.size(4_000, 2_000)),
        READABLE: Entry("hand_rolled", "enqueue", bench.size(1_000, 500)),
        PGQUEUER: Entry("pgqueuer", "enqueue", bench.size(2_000, 1_000)),
    }
    if not bench.quick:
        single[DBOS] = Entry("dbos", "enqueue", 500)
        single[ABSURD] = _absurd(bench, "enqueue", 1_000)
    found = await _held(bench, Contest("single enqueues, 16 coroutines", "runs/s", single))
    row = "enqueue/s, single"
    bench.compared(row, found, FAST, PGQUEUER, targets.ENQUEUE_SINGLE, under=COROUTINES)
    _as_read(bench, row, found, under=COROUTINES)
    bulk = {
        FAST: Entry("hand_rolled+fast", "enqueue_bulk", bench.size(20_000, 10_000)),
        PGQUEUER: Entry("pgqueuer", "enqueue_bulk", bench.size(20_000, 10_000)),
    }
    if not bench.quick:
        bulk[PROCRASTINATE] = Entry("procrastinate", "enqueue_bulk", 5_000)
    found = await _held(bench, Contest("bulk enqueues of 1,000", "runs/s", bulk))
    bench.compared("enqueue/s, bulk of 1,000", found, FAST, PGQUEUER, targets.ENQUEUE_BULK)


async def claims(bench: Bench) -> None:
    """Our claim from Python against pgbench with a bare claim, on the same tables, 4 clients."""
    for batch, count in (1, bench.size(4_000, 2_000)), (50, bench.size(40_000, 20_000)):
        entries = {
            FAST: Entry("hand_rolled+fast", f"claim_{batch}", count),
            "pgbench": Entry("pgbench", f"claim_{batch}", count),
        }
        contest = Contest(f"claims, batch {batch}, 4 clients", "claims/s", entries)
        found = await _held(bench, contest)
        row = f"claims/s, batch of {batch}"
        bench.compared(row, found, FAST, "pgbench", targets.CLAIMS_PGBENCH)


async def temporal(bench: Bench) -> None:
    """Our layer over Temporal against the bare SDK, each time on a development server of its own.

    A run leaves timers behind, which fire ten seconds after it or later. On one server for all,
    they would be work during the next measurement.
    """
    count = bench.size(120, 40)
    entries = {
        "temporal_version": Entry("temporal", "ours", count),
        "the bare SDK": Entry("temporal", "bare", count),
    }
    contest = Contest("runs on Temporal", "runs/s", entries)
    arena = dev_servers(bench.directory / "temporal")
    found = await contest.held(arena, bench.size(5, 3), bench.say)
    bench.rounds.append(found)
    bench.compared(
        "Temporal runs/s",
        found,
        "temporal_version",
        "the bare SDK",
        targets.TEMPORAL_BARE,
        under="limits unset, the SDK's own timeouts",
    )


def dev_servers(directory: Path) -> Arena:
    """A fresh Temporal development server for each measurement."""
    numbers = itertools.count(1)

    @asynccontextmanager
    async def arena() -> AsyncIterator[str]:
        mine = directory / str(next(numbers))
        async with engine_plugin("temporal").embedded(mine, os.environ) as env:
            yield env["TEMPORAL_ADDRESS"]

    return arena


def _as_read(bench: Bench, row: str, found: Rounds, *, under: str = UNDISTURBED) -> None:
    """Rows for the readable path beside every peer, whoever is ahead."""
    for peer in found.rates:
        if peer not in (FAST, READABLE):
            bench.compared(row, found, READABLE, peer, None, under=under)


def _absurd(bench: Bench, measure: str, count: int) -> Entry:
    env = {} if bench.absurd_sql is None else {ABSURD_SQL: str(bench.absurd_sql)}
    return Entry("absurd", measure, count, env)


async def _held(bench: Bench, contest: Contest) -> Rounds:
    found = await contest.held(bench.server.database, bench.size(5, 3), bench.say)
    bench.rounds.append(found)
    return found
