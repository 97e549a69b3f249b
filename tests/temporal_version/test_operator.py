"""What an operator does by Temporal's own means, and what becomes of ownership then."""

from __future__ import annotations

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import (
    PauseActivityRequest,
    ResetActivityRequest,
    UnpauseActivityRequest,
)

from tests.temporal_version.conftest import Bench
from two_workers import RunState


async def pending_id(bench: Bench, run_id: str) -> str:
    described = await bench.engine.client.get_workflow_handle(run_id).describe()
    [pending] = described.raw_description.pending_activities
    return str(pending.activity_id)


async def test_the_fence_rises_through_a_reset_although_the_attempt_falls(bench: Bench) -> None:
    run_id = await bench.start("a", how="hold")
    first = await bench.process(grace="0")
    await bench.ledger.until("begin", 1)
    first.terminate()  # handed over: the next attempt is the second
    assert await first.wait() == 0
    async with bench.worker():
        before = (await bench.ledger.until("begin", 2))[-1]
        assert before["attempt"] == 2
        await bench.engine.client.workflow_service.reset_activity(
            ResetActivityRequest(
                namespace="default",
                execution=WorkflowExecution(workflow_id=run_id),
                id=await pending_id(bench, run_id),
            )
        )
        after = (await bench.ledger.until("begin", 3))[-1]
        bench.ledger.release()
        assert await bench.engine.result(run_id, timeout=60) == ["a"]
    assert after["attempt"] <= before["attempt"]
    assert after["fence"] > before["fence"]


async def test_a_paused_activity_stops_and_goes_on_with_its_checkpoint(bench: Bench) -> None:
    run_id = await bench.start("a", how="hold")
    service, execution = bench.engine.client.workflow_service, WorkflowExecution(workflow_id=run_id)
    async with bench.worker():
        await bench.ledger.until("begin", 1)
        await bench.checkpointed(run_id)
        activity_id = await pending_id(bench, run_id)
        await service.pause_activity(
            PauseActivityRequest(namespace="default", execution=execution, id=activity_id)
        )
        await bench.ledger.until("cancelled", 1)
        await bench.until_state(run_id, RunState.SUSPENDED)
        await service.unpause_activity(
            UnpauseActivityRequest(namespace="default", execution=execution, id=activity_id)
        )
        begins = await bench.ledger.until("begin", 2)
        bench.ledger.release()
        assert await bench.engine.result(run_id, timeout=60) == ["a"]
    assert begins[1]["checkpoint"] >= 1
    [record] = await bench.engine.steps(run_id)
    assert record.outcome == "succeeded"
