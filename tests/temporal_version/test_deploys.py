"""Changed code meets open runs: the run waits, nothing is lost, and two ways lead through."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from temporalio.api.workflowservice.v1 import SetWorkerDeploymentCurrentVersionRequest
from temporalio.service import RPCError

from tests.temporal_version import agents
from tests.temporal_version.app import APP
from tests.temporal_version.conftest import Bench

CHANGED = replace(APP, agent=agents.other_text)


async def test_a_run_waits_for_the_code_that_fits(bench: Bench) -> None:
    run_id = await bench.start("a", "b", "c", how="hold")
    first = await bench.process()
    await bench.ledger.until("begin", 1)
    await bench.kill(first)
    async with bench.worker(CHANGED):  # performs step a again, then meets the mismatch
        await bench.ledger.until("begin", 2)
        bench.ledger.release()
        async with asyncio.timeout(60):
            while not await bench.events(run_id, "WORKFLOW_TASK_FAILED"):
                await asyncio.sleep(0.1)
        assert not (await bench.engine.get(run_id)).state.is_final
    [failed, *_] = await bench.events(run_id, "WORKFLOW_TASK_FAILED")
    message = failed.workflow_task_failed_event_attributes.failure.message
    assert "TMPRL1100" in message
    async with bench.worker(APP):
        assert await bench.engine.result(run_id, timeout=60) == ["a", "b", "c"]
    assert [r.key for r in await bench.engine.steps(run_id)] == [
        f"{run_id}/{n}.0" for n in range(3)
    ]


async def make_current(bench: Bench, name: str, build: str) -> None:
    """What a deploy script does once the new build's workers poll."""
    request = SetWorkerDeploymentCurrentVersionRequest(
        namespace="default", deployment_name=name, build_id=build
    )
    async with asyncio.timeout(60):
        while True:
            try:
                service = bench.engine.client.workflow_service
                await service.set_worker_deployment_current_version(request)
            except RPCError:  # the server does not know the build before its first poll
                await asyncio.sleep(0.1)
            else:
                return


async def test_with_worker_versioning_a_run_stays_with_the_build_that_began_it(
    bench: Bench,
) -> None:
    name = bench.settings().task_queue
    async with bench.worker(APP, deployment=f"{name}:1"):
        await make_current(bench, name, "1")
        old = await bench.start("a", "b", how="hold")
        await bench.ledger.until("begin", 1)
        async with bench.worker(CHANGED, deployment=f"{name}:2"):
            await make_current(bench, name, "2")
            new = await bench.start("a", "b", how="hold")
            await bench.ledger.until("begin", 2)
            bench.ledger.release()
            assert await bench.engine.result(old, timeout=60) == ["a", "b"]
            assert await bench.engine.result(new, timeout=60) == ["please a", "please b"]
    assert await bench.events(old, "WORKFLOW_TASK_FAILED") == []
