"""Changed code meets open runs: the run waits, nothing is lost, and two ways lead through."""

from __future__ import annotations

import asyncio
from dataclasses import replace

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
