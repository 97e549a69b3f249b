"""Long agents: history grows with what is new, and continuing as new loses nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from temporalio.worker import Worker

from temporal_version import progress
from temporal_version.registry import register
from temporal_version.worker import sandbox
from temporal_version.workflow import AgentRun
from tests.temporal_version import agents
from tests.temporal_version.app import APP, COUNTS, GROWS, LARGE, PARALLEL
from tests.temporal_version.conftest import Bench
from two_workers import RunFailed, RunState

TOKENS = 200_000
CHARACTERS = 4 * TOKENS


async def test_a_hundred_calls_with_a_growing_transcript_stay_far_under_the_limits(
    bench: Bench,
) -> None:
    """Carried each time, they add up to 40 MB of 50; by reference each reply counts once.

    sdk-python#1890 met the end at call 53 of 100.
    """
    run_id = await bench.start(calls=100, size=CHARACTERS // 100)
    async with bench.worker(GROWS):
        assert await bench.engine.result(run_id, timeout=110) == CHARACTERS
    described = await bench.engine.client.get_workflow_handle(run_id).describe()
    assert described.raw_info.history_size_bytes < 1.5 * CHARACTERS
    scheduled = await bench.events(run_id, "ACTIVITY_TASK_SCHEDULED")
    sizes = [e.activity_task_scheduled_event_attributes.input.ByteSize() for e in scheduled]
    assert max(sizes) < 20_000
    assert len(await bench.engine.steps(run_id)) == 100


async def test_continuing_as_new_keeps_steps_signals_and_cost(knobs_bench: Bench) -> None:
    bench = knobs_bench  # its server suggests it after 60 events
    run_id = await bench.start(run=bench.run(calls=24).model_copy(update={"priority": 1}))
    handle = bench.engine.client.get_workflow_handle(run_id)
    first = (await handle.describe()).run_id
    for n in range(6):
        await bench.engine.signal(run_id, "go", n, signal_id=f"s{n}")
    async with bench.worker(COUNTS):
        assert await bench.engine.result(run_id, timeout=100) == list(range(6))
    described = await handle.describe()
    assert described.run_id != first
    assert described.raw_info.priority.priority_key == 1
    view = await bench.engine.get(run_id)
    assert (view.state, view.cost, view.tenant) == (RunState.SUCCEEDED, 24 * 7, "default")
    assert view.created_at < described.start_time, "the start of the first run, not of the last"
    keys = [record.key for record in await bench.engine.steps(run_id)]
    assert len(keys) == len(set(keys)) == 24
    assert [entry["key"] for entry in bench.ledger.entries("begin")] == keys
    await bench.engine.start(bench.run_again(run_id, calls=24))


async def test_a_signal_id_seen_before_continuing_as_new_is_still_known(
    knobs_bench: Bench,
) -> None:
    bench = knobs_bench
    run_id = await bench.start(calls=24)
    async with bench.worker(COUNTS):
        for n in (0, 0, 1, 0, 2, 3, 4):
            await bench.engine.signal(run_id, "go", n, signal_id=f"s{n}")
        await bench.until_state(run_id, RunState.WAITING)
        await bench.engine.signal(run_id, "go", "again", signal_id="s0")
        await bench.engine.signal(run_id, "go", 5, signal_id="s5")
        assert await bench.engine.result(run_id, timeout=100) == list(range(6))


async def test_a_wide_fan_out_stays_under_the_servers_limit_of_pending_activities(
    knobs_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = knobs_bench  # its server refuses a 21st
    monkeypatch.setattr(progress, "FAN_OUT", 15)
    run_id = await bench.start(*(str(n) for n in range(60)))
    async with bench.worker(PARALLEL):
        assert await bench.engine.result(run_id, timeout=100) == [str(n) for n in range(60)]
    assert await bench.events(run_id, "WORKFLOW_TASK_FAILED") == []


async def test_a_step_over_the_limit_of_one_payload_fails_the_run_with_a_reason(
    bench: Bench,
) -> None:
    """Not refused by the server for ever, as in sdk-python#235."""
    run_id = await bench.start(calls=4, size=700_000)
    async with bench.worker(GROWS):
        with pytest.raises(RunFailed, match=r"over Temporal's limit ..*PAYLOAD_STORE"):
            await bench.engine.result(run_id, timeout=60)


async def test_a_result_over_the_limit_of_one_payload_fails_the_run_with_a_reason(
    bench: Bench,
) -> None:
    run_id = await bench.start(size=2_500_000)
    async with bench.worker(LARGE):
        with pytest.raises(RunFailed, match="return a reference"):
            await bench.engine.result(run_id, timeout=60)


async def test_a_step_that_nobody_takes_fails_at_its_deadline(bench: Bench) -> None:
    """temporal#11402: start-to-close does not bound a task that is never delivered."""
    settings, client = bench.settings(step_deadline="2"), bench.engine.client
    register(APP, settings)
    run_id = await bench.start("a")
    async with Worker(
        client,
        task_queue=settings.queue("work"),
        workflows=[AgentRun],
        workflow_runner=sandbox([APP]),
    ):
        with pytest.raises(RunFailed, match="TimeoutError"):
            await bench.engine.result(run_id, timeout=60)


async def test_two_steps_that_wait_for_the_same_signal_get_one_each_in_order(bench: Bench) -> None:
    run_id = await bench.start()
    async with bench.worker(replace(APP, agent=agents.waits_twice_at_once)):
        await bench.until_state(run_id, RunState.WAITING)
        for n in (1, 2):
            await bench.engine.signal(run_id, "go", n, signal_id=f"s{n}")
        assert await bench.engine.result(run_id, timeout=60) == [1, 2]
