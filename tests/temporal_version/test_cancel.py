"""Cancellation: how soon the work stops, what the run waits for, and what is not interrupted."""

from __future__ import annotations

import asyncio
import time

import pytest
from temporalio.worker import Worker

from temporal_version.activities import activities
from temporal_version.registry import register
from temporal_version.worker import sandbox
from temporal_version.workflow import AgentRun
from tests.temporal_version.app import APP, COMMITS, PARALLEL
from tests.temporal_version.conftest import Bench
from two_workers import RunCancelled, RunState


async def ended(bench: Bench, run_id: str) -> None:
    with pytest.raises(RunCancelled):
        await bench.engine.result(run_id, timeout=60)


async def test_tuned_a_cancelled_run_ends_after_its_work_has_stopped(bench: Bench) -> None:
    run_id = await bench.start("a", "b", how="hold")
    async with bench.worker(PARALLEL):
        await bench.ledger.until("begin", 2)
        await bench.engine.cancel(run_id)
        await ended(bench, run_id)
        assert len(bench.ledger.entries("cancelled")) == 2, "both had stopped when the run ended"


async def test_stock_a_cancelled_run_ends_while_its_work_goes_on(bench: Bench) -> None:
    """TRY_CANCEL with the SDK's throttle of 0.8 of the timeout: an orphan until then."""
    run_id = await bench.start("a", how="hold")
    stock = {"arm": "stock", "heartbeat_timeout": "10"}
    del bench.env["TEMPORAL_VERSION_HEARTBEAT_THROTTLE"]
    async with bench.worker(**stock):
        await bench.ledger.until("begin", 1)
        await bench.checkpointed(run_id)
        await bench.engine.cancel(run_id)
        await ended(bench, run_id)
        assert bench.ledger.entries("cancelled") == []
        await bench.ledger.until("cancelled", 1)


async def test_the_throttle_bounds_how_long_a_cancelled_step_goes_on(bench: Bench) -> None:
    run_id = await bench.start("a", how="hold")
    async with bench.worker(heartbeat_timeout="60", heartbeat_throttle="0.2"):
        await bench.ledger.until("begin", 1)
        asked = time.monotonic()
        await bench.engine.cancel(run_id)
        [stopped] = await bench.ledger.until("cancelled", 1)
    assert stopped["at"] - asked < 15, "0.2 s by the settings; 48 s by the SDK's own throttle"


async def test_push_reaches_a_step_between_its_heartbeats(knobs_bench: Bench) -> None:
    """Arm `server`: the next heartbeat that leaves would be half a minute away."""
    bench = knobs_bench
    run_id = await bench.start("a", how="silent")
    async with bench.worker(heartbeat_timeout="120", heartbeat_throttle="40"):
        await bench.ledger.until("begin", 1)
        asked = time.monotonic()
        await bench.engine.cancel(run_id)
        [stopped] = await bench.ledger.until("cancelled", 1)
    assert stopped["at"] - asked < 15


async def test_an_uninterruptible_step_is_recorded_before_its_run_ends(bench: Bench) -> None:
    run_id = await bench.start(how="hold")
    async with bench.worker(COMMITS):
        await bench.ledger.until("begin", 1)
        await bench.engine.cancel(run_id)
        await bench.checkpointed(run_id)  # beats go out and come back: nothing interrupts it
        bench.ledger.release()
        await ended(bench, run_id)
    assert bench.ledger.entries("cancelled") == []
    [record] = await bench.engine.steps(run_id)
    assert (record.kind, record.outcome) == ("commit", "succeeded")


async def test_a_cancel_survives_the_death_of_the_worker(bench: Bench) -> None:
    run_id = await bench.start("a", how="hold")
    first = await bench.process()
    await bench.ledger.until("begin", 1)
    await bench.kill(first)
    view = await bench.engine.cancel(run_id)
    assert (view.state.is_final, view.cancel_requested) == (False, True)
    async with bench.worker():
        await ended(bench, run_id)
    assert len(bench.ledger.entries("begin")) == 1, "nobody resumed it"


async def test_a_cancel_that_meets_a_completion_is_not_swallowed(bench: Bench) -> None:
    """sdk-python#352: both lie in one workflow task, because no driver was there in between."""
    settings, client = bench.settings(), bench.engine.client
    register(APP, settings)
    queue = settings.queue("work")
    effects = activities(APP, settings, worker_id="effects", resources=None)
    run_id = await bench.start("a", "b", how="hold")
    async with Worker(client, task_queue=queue, activities=effects):
        async with Worker(
            client, task_queue=queue, workflows=[AgentRun], workflow_runner=sandbox([APP])
        ):
            await bench.ledger.until("begin", 1)
        await bench.engine.cancel(run_id)
        bench.ledger.release()
        await bench.ledger.until("end", 1)
    async with bench.worker():
        await ended(bench, run_id)
    assert len(bench.ledger.entries("begin")) == 1, "step b was never begun"


async def test_a_terminated_run_counts_as_cancelled(bench: Bench) -> None:
    run_id = await bench.start("a", how="hold")
    async with bench.worker():
        await bench.ledger.until("begin", 1)
        await bench.engine.client.get_workflow_handle(run_id).terminate("by hand")
        await ended(bench, run_id)
        await bench.ledger.until("cancelled", 1)
    assert (await bench.engine.get(run_id)).state is RunState.CANCELLED


async def test_a_step_that_was_not_begun_is_not_begun_after_the_cancel(bench: Bench) -> None:
    """No worker is there: step and request lie side by side when one comes."""
    settings, client = bench.settings(), bench.engine.client
    register(APP, settings)
    run_id = await bench.start("a")
    async with Worker(
        client,
        task_queue=settings.queue("work"),
        workflows=[AgentRun],
        workflow_runner=sandbox([APP]),
    ):
        while not await bench.events(run_id, "ACTIVITY_TASK_SCHEDULED"):
            await asyncio.sleep(0.05)
    await asyncio.sleep(1.0)  # longer than a first attempt that starts at once
    await bench.engine.cancel(run_id)
    async with bench.worker():
        await ended(bench, run_id)
    assert bench.ledger.entries() == []
