"""Whose step is next: priorities, and fairness between tenants where the server was told to."""

from __future__ import annotations

import asyncio

from tests.temporal_version.conftest import Bench
from two_workers import Run


async def order(bench: Bench, runs: list[Run], *, slots: int = 1) -> list[str]:
    """Start the runs behind others that hold all slots; the order in which they get one."""
    blockers = [await bench.start("x", how="hold") for _ in range(slots)]
    async with bench.worker(concurrency=str(slots)):
        await bench.ledger.until("begin", slots)
        for run in runs:
            await bench.engine.start(run)
        for run in runs:
            async with asyncio.timeout(60):
                while not await bench.events(run.run_id, "ACTIVITY_TASK_SCHEDULED"):
                    await asyncio.sleep(0.05)
        bench.ledger.release()
        for run_id in (*blockers, *(run.run_id for run in runs)):
            await bench.engine.result(run_id, timeout=60)
    return [entry["key"].partition("/")[0] for entry in bench.ledger.entries("begin")[slots:]]


async def test_a_lower_priority_number_goes_first(knobs_bench: Bench) -> None:
    usual = [knobs_bench.run("a").model_copy(update={"priority": 5}) for _ in range(5)]
    urgent = knobs_bench.run("a").model_copy(update={"priority": 1})
    assert (await order(knobs_bench, [*usual, urgent]))[0] == urgent.run_id


async def test_eager_steps_do_not_overtake_one_that_waits(knobs_bench: Bench) -> None:
    """More slots than polls, and runs whose next step could be had eagerly at once."""
    usual = [knobs_bench.run(*"abc").model_copy(update={"priority": 5}) for _ in range(12)]
    urgent = knobs_bench.run("a").model_copy(update={"priority": 1})
    assert (await order(knobs_bench, [*usual, urgent], slots=8)).index(urgent.run_id) <= 8


async def test_a_small_tenant_does_not_wait_behind_a_big_one(knobs_bench: Bench) -> None:
    big = [knobs_bench.run("a").model_copy(update={"tenant": "big"}) for _ in range(8)]
    small = knobs_bench.run("a").model_copy(update={"tenant": "small"})
    assert (await order(knobs_bench, [*big, small])).index(small.run_id) <= 2


async def test_a_rate_of_the_queue_holds_over_its_workers(bench: Bench) -> None:
    """Twelve effects at four a second cannot be done in one."""
    runs = [await bench.start("a") for _ in range(12)]
    async with bench.worker(queue_rate="4"), bench.worker(queue_rate="4"):
        for run_id in runs:
            await bench.engine.result(run_id, timeout=60)
    begins = sorted(entry["at"] for entry in bench.ledger.entries("begin"))
    assert begins[-1] - begins[0] > 1.0
