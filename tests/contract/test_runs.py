"""The engine contract, part 1: starting, ending, recording, failing."""

from __future__ import annotations

import asyncio

import pytest

from tests.contract import agents
from tests.contract.conftest import Bench
from two_workers import (
    RunClosed,
    RunConflict,
    RunFailed,
    RunNotFound,
    RunState,
)


async def test_a_run_goes_from_start_to_result(bench: Bench) -> None:
    run = bench.run(steps=["a", "b", "c"])
    started = await bench.engine.start(run)
    assert (started.run_id, started.kind, started.tenant) == (run.run_id, bench.kind, "default")
    async with bench.worker(agents.in_sequence):
        assert await bench.engine.result(run.run_id, timeout=60) == ["a", "b", "c"]
    view = await bench.engine.get(run.run_id)
    assert view.state is RunState.SUCCEEDED
    assert view.closed_at is not None
    assert view.closed_at >= view.created_at
    assert bench.probe.keys() == [f"{run.run_id}/{n}.0" for n in range(3)]


async def test_steps_are_recorded_with_key_kind_outcome_and_worker(bench: Bench) -> None:
    run = bench.run(steps=["a", "b"])
    await bench.engine.start(run)
    async with bench.worker(agents.in_parallel) as worker_id:
        await bench.engine.result(run.run_id, timeout=60)
    records = await bench.engine.steps(run.run_id)
    assert [(r.key, r.kind, r.outcome, r.worker) for r in records] == [
        (f"{run.run_id}/0.0", "ask", "succeeded", worker_id),
        (f"{run.run_id}/0.1", "ask", "succeeded", worker_id),
    ]


async def test_the_same_start_twice_is_one_run(bench: Bench) -> None:
    run = bench.run(steps=["a"])
    first, second = await asyncio.gather(bench.engine.start(run), bench.engine.start(run))
    assert first.created_at == second.created_at
    async with bench.worker(agents.in_sequence):
        await bench.engine.result(run.run_id, timeout=60)
        again = await bench.engine.start(run)
    assert again.state is RunState.SUCCEEDED
    assert bench.probe.keys() == [f"{run.run_id}/0.0"]


@pytest.mark.parametrize(
    "change", [{"payload": {"steps": ["b"]}}, {"tenant": "other"}, {"budget": 5}]
)
async def test_the_same_id_with_other_content_is_a_conflict(
    bench: Bench, change: dict[str, object]
) -> None:
    run = bench.run(steps=["a"])
    await bench.engine.start(run)
    with pytest.raises(RunConflict):
        await bench.engine.start(run.model_copy(update=change))
    await bench.engine.cancel(run.run_id)


async def test_the_steps_of_a_batch_run_at_the_same_time(bench: Bench) -> None:
    run = bench.run(steps=["a", "b", "c"], how="hold")
    await bench.engine.start(run)
    async with bench.worker(agents.in_parallel):
        await bench.probe.until(lambda: bench.probe.in_flight[run.run_id] == 3)
        bench.probe.gate.set()
        assert await bench.engine.result(run.run_id, timeout=60) == ["a", "b", "c"]


async def test_a_failing_step_is_tried_again(bench: Bench) -> None:
    run = bench.run(steps=["a"], how="fail:2")
    await bench.engine.start(run)
    async with bench.worker(agents.in_sequence):
        assert await bench.engine.result(run.run_id, timeout=60) == ["a"]
    assert [call.attempt for call in bench.probe.begun] == [1, 2, 3]
    [record] = await bench.engine.steps(run.run_id)
    assert record.attempt == 3


async def test_a_step_that_runs_out_of_attempts_fails_inside_the_agent(bench: Bench) -> None:
    run = bench.run(how="always_fail")
    await bench.engine.start(run)
    async with bench.worker(agents.recovers):
        result = await bench.engine.result(run.run_id, timeout=60)
    assert result == "instead of ConnectionError"
    assert [r.outcome for r in await bench.engine.steps(run.run_id)] == ["failed", "succeeded"]
    assert len(bench.probe.begun) == 3 + 1


async def test_a_permanent_failure_is_not_tried_again(bench: Bench) -> None:
    run = bench.run(how="permanent")
    await bench.engine.start(run)
    async with bench.worker(agents.keeps_failures):
        result = await bench.engine.result(run.run_id, timeout=60)
    assert result == ["good", "ask failed: PermanentFailure after 1"]


async def test_retry_later_costs_no_attempt(bench: Bench) -> None:
    run = bench.run(steps=["a"], how="later")
    await bench.engine.start(run)
    async with bench.worker(agents.in_sequence):
        assert await bench.engine.result(run.run_id, timeout=60) == ["a"]
    assert len(bench.probe.begun) == 5, "four refusals, more than the policy's three attempts"


async def test_the_next_attempt_reads_the_last_checkpoint(bench: Bench) -> None:
    run = bench.run(steps=["a"], how="beat")
    await bench.engine.start(run)
    async with bench.worker(agents.in_sequence):
        assert await bench.engine.result(run.run_id, timeout=60) == ["a from {'page': 7}"]


async def test_an_uncaught_step_failure_fails_the_run(bench: Bench) -> None:
    run = bench.run(steps=["a"], how="permanent")
    await bench.engine.start(run)
    async with bench.worker(agents.in_sequence):
        with pytest.raises(RunFailed, match="the model refused"):
            await bench.engine.result(run.run_id, timeout=60)
    view = await bench.engine.get(run.run_id)
    assert view.state is RunState.FAILED
    assert "the model refused" in str(view.failure)


async def test_an_agents_own_bug_fails_its_run(bench: Bench) -> None:
    run = bench.run()
    await bench.engine.start(run)
    async with bench.worker(agents.raises):
        with pytest.raises(RunFailed, match="ValueError: the agent has a bug"):
            await bench.engine.result(run.run_id, timeout=60)


async def test_an_agent_that_awaits_something_else_fails_with_its_name(bench: Bench) -> None:
    run = bench.run()
    await bench.engine.start(run)
    async with bench.worker(agents.awaits_a_timer):
        with pytest.raises(RunFailed, match="may await only do"):
            await bench.engine.result(run.run_id, timeout=60)


async def test_a_payload_that_does_not_fit_fails_the_run(bench: Bench) -> None:
    run = bench.run(steps=7)
    await bench.engine.start(run)
    async with bench.worker(agents.in_sequence):
        with pytest.raises(RunFailed, match="steps"):
            await bench.engine.result(run.run_id, timeout=60)


async def test_an_unknown_run_is_not_found(bench: Bench) -> None:
    for asked in (
        bench.engine.get("no-such-run"),
        bench.engine.steps("no-such-run"),
        bench.engine.cancel("no-such-run"),
        bench.engine.result("no-such-run", timeout=5),
        bench.engine.signal("no-such-run", "go", None, signal_id="1"),
    ):
        with pytest.raises(RunNotFound):
            await asked


async def test_waiting_too_long_for_a_result_is_a_timeout(bench: Bench) -> None:
    run = bench.run(steps=["a"])
    await bench.engine.start(run)
    with pytest.raises(TimeoutError):
        await bench.engine.result(run.run_id, timeout=0.3)
    await bench.engine.cancel(run.run_id)


async def test_runs_are_listed_by_kind_tenant_and_state(bench: Bench) -> None:
    mine = bench.run(steps=["a"]).model_copy(update={"tenant": "acme"})
    other = bench.run(steps=["b"])
    await bench.engine.start(mine)
    await bench.engine.start(other)
    async with bench.worker(agents.in_sequence):
        await bench.engine.result(mine.run_id, timeout=60)
        await bench.engine.result(other.run_id, timeout=60)

    async def listed(**filters: object) -> set[str]:
        runs = bench.engine.list_runs(kind=bench.kind, **filters)  # type: ignore[arg-type] # any of them
        found = await runs
        return {view.run_id for view in found}

    async with asyncio.timeout(60):  # a list may lag behind `get`
        while await listed(state=RunState.SUCCEEDED) != {mine.run_id, other.run_id}:
            await asyncio.sleep(0.1)
        while await listed(tenant="acme") != {mine.run_id}:
            await asyncio.sleep(0.1)
    assert await listed(state=RunState.FAILED) == set()


async def test_an_ended_run_takes_no_more_signals(bench: Bench) -> None:
    run = bench.run(steps=["a"])
    await bench.engine.start(run)
    async with bench.worker(agents.in_sequence):
        await bench.engine.result(run.run_id, timeout=60)
    with pytest.raises(RunClosed):
        await bench.engine.signal(run.run_id, "go", None, signal_id="1")
