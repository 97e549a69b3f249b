"""The engine contract, part 2: signals, sleep, cancellation, ownership, drain."""

from __future__ import annotations

import asyncio

import pytest

from tests.contract import agents
from tests.contract.conftest import Bench
from two_workers import RunCancelled, RunState

PARKED = (RunState.WAITING, RunState.SCHEDULED, RunState.RUNNING)


async def test_signals_are_delivered_once_each_and_in_order(bench: Bench) -> None:
    run = bench.run(wait_for=["go", "go", "stop"])
    await bench.engine.start(run)
    for signal_id, payload in [("1", "first"), ("1", "first"), ("2", "second"), ("1", "first")]:
        await bench.engine.signal(run.run_id, "go", payload, signal_id=signal_id)
    async with bench.worker(agents.waits):
        await bench.engine.signal(run.run_id, "stop", {"by": "me"}, signal_id="3")
        result = await bench.engine.result(run.run_id, timeout=60)
    assert result == ["first", "second", {"by": "me"}]


async def test_a_waiting_run_continues_when_its_signal_comes(bench: Bench) -> None:
    run = bench.run(wait_for=["go"])
    await bench.engine.start(run)
    async with bench.worker(agents.waits):
        await bench.until_state(run.run_id, RunState.WAITING)
        await bench.engine.signal(run.run_id, "go", 1, signal_id="1")
        assert await bench.engine.result(run.run_id, timeout=60) == [1]


async def test_a_run_waits_for_a_signal_beside_its_work(bench: Bench) -> None:
    run = bench.run()
    await bench.engine.start(run)
    async with bench.worker(agents.waits_beside_work):
        await bench.probe.until(lambda: len(bench.probe.ended) == 1)
        await bench.engine.signal(run.run_id, "go", "now", signal_id="1")
        assert await bench.engine.result(run.run_id, timeout=60) == ["work", "now"]
    assert len(bench.probe.begun) == 1


async def test_a_sleeping_run_wakes_and_repeats_nothing(bench: Bench) -> None:
    run = bench.run(seconds=1.0)
    await bench.engine.start(run)
    async with bench.worker(agents.sleeps):
        assert await bench.engine.result(run.run_id, timeout=60) == "after"
    view = await bench.engine.get(run.run_id)
    assert view.closed_at is not None
    assert (view.closed_at - view.created_at).total_seconds() >= 1.0
    assert bench.probe.keys() == [f"{run.run_id}/0.0", f"{run.run_id}/2.0"]


async def test_cancel_reaches_the_running_step(bench: Bench) -> None:
    run = bench.run(steps=["a", "b"], how="hold")
    await bench.engine.start(run)
    async with bench.worker(agents.in_sequence):
        await bench.probe.until(lambda: len(bench.probe.begun) == 1)
        requested = await bench.engine.cancel(run.run_id, reason="no longer needed")
        assert requested.cancel_requested
        await bench.probe.until(lambda: bench.probe.cancelled == [f"{run.run_id}/0.0"])
        with pytest.raises(RunCancelled):
            await bench.engine.result(run.run_id, timeout=60)
    assert len(bench.probe.begun) == 1
    assert (await bench.engine.get(run.run_id)).state is RunState.CANCELLED


async def test_a_run_cancelled_before_any_worker_came_does_nothing(bench: Bench) -> None:
    run = bench.run(steps=["a"])
    await bench.engine.start(run)
    await bench.engine.cancel(run.run_id)
    async with bench.worker(agents.in_sequence):
        with pytest.raises(RunCancelled):
            await bench.engine.result(run.run_id, timeout=60)
    assert bench.probe.begun == []


async def test_a_waiting_run_can_be_cancelled(bench: Bench) -> None:
    run = bench.run(wait_for=["go"])
    await bench.engine.start(run)
    async with bench.worker(agents.waits):
        await bench.until_state(run.run_id, RunState.WAITING)
        await bench.engine.cancel(run.run_id)
        with pytest.raises(RunCancelled):
            await bench.engine.result(run.run_id, timeout=60)


async def test_an_uninterruptible_step_ends_before_its_run_is_cancelled(bench: Bench) -> None:
    run = bench.run(how="hold")
    await bench.engine.start(run)
    async with bench.worker(agents.commits):
        await bench.probe.until(lambda: len(bench.probe.begun) == 1)
        await bench.engine.cancel(run.run_id)
        bench.probe.gate.set()
        with pytest.raises(RunCancelled):
            await bench.engine.result(run.run_id, timeout=60)
    assert bench.probe.cancelled == []
    assert bench.probe.ended == [f"{run.run_id}/0.0"]
    assert len(bench.probe.begun) == 1, "the step after the commit was never begun"


async def test_cancelling_an_ended_run_changes_nothing(bench: Bench) -> None:
    run = bench.run(steps=["a"])
    await bench.engine.start(run)
    async with bench.worker(agents.in_sequence):
        await bench.engine.result(run.run_id, timeout=60)
    view = await bench.engine.cancel(run.run_id)
    assert view.state is RunState.SUCCEEDED
    assert await bench.engine.result(run.run_id, timeout=5) == ["a"]


async def test_a_running_run_answers_who_owns_it_and_until_when(bench: Bench) -> None:
    run = bench.run(steps=["a"], how="hold")
    await bench.engine.start(run)
    async with bench.worker(agents.in_sequence) as worker_id:
        await bench.probe.until(lambda: len(bench.probe.begun) == 1)
        async with asyncio.timeout(60):
            while (view := await bench.engine.get(run.run_id)).owned_until is None:
                await asyncio.sleep(0.05)
        assert view.state is RunState.RUNNING
        assert view.owner == worker_id
        assert view.fence == bench.probe.begun[0].fence
        assert view.recovery
        bench.probe.gate.set()
        await bench.engine.result(run.run_id, timeout=60)
    view = await bench.engine.get(run.run_id)
    assert (view.owner, view.owned_until) == (None, None)


async def test_a_stopping_worker_hands_over_and_nothing_recorded_is_repeated(bench: Bench) -> None:
    run = bench.run(steps=["a", "b"], how="hold")
    await bench.engine.start(run)
    async with bench.worker(agents.in_sequence):
        await bench.probe.until(lambda: len(bench.probe.begun) == 1)
        bench.probe.gate.set()
        await bench.probe.until(lambda: len(bench.probe.ended) >= 1)
    async with bench.worker(agents.in_sequence):
        assert await bench.engine.result(run.run_id, timeout=60) == ["a", "b"]
    records = [record.key for record in await bench.engine.steps(run.run_id)]
    assert records == [f"{run.run_id}/0.0", f"{run.run_id}/1.0"]


async def test_every_call_says_who_performs_it_under_which_fence(bench: Bench) -> None:
    run = bench.run(steps=["a"], how="fail:1")
    await bench.engine.start(run)
    async with bench.worker(agents.in_sequence) as worker_id:
        await bench.engine.result(run.run_id, timeout=60)
    first, second = bench.probe.begun
    assert (first.run_id, first.worker, first.engine) == (
        run.run_id,
        worker_id,
        bench.engine.name,
    )
    assert second.fence >= first.fence
