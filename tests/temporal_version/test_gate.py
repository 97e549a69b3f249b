"""The permit gate under trouble: holders that die, workers that die, limits that come late."""

from __future__ import annotations

import asyncio

import pytest

from temporal_version import limits
from temporal_version.client import connect_client
from temporal_version.engine import TemporalEngine
from temporal_version.messages import GateState
from tests.temporal_version.app import PARALLEL
from tests.temporal_version.conftest import Bench
from two_workers import Limits, RunState


async def gate_state(bench: Bench) -> GateState:
    handle = bench.engine.client.get_workflow_handle(bench.settings().gate)
    state: GateState = await handle.query("state", result_type=GateState)
    return state


async def waiting(bench: Bench) -> None:
    """Until the gate has somebody waiting."""
    async with asyncio.timeout(60):
        while not (await gate_state(bench)).waiting:
            await asyncio.sleep(0.05)


async def test_without_limits_nothing_touches_a_gate(bench: Bench) -> None:
    run_id = await bench.start("a")
    async with bench.worker():
        await bench.engine.result(run_id, timeout=60)
    assert await bench.events(run_id, "SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED") == []
    assert await bench.engine.limits() == Limits()


async def test_a_run_whose_client_does_not_know_the_gate_yet_is_told_of_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BELIEVED", 8.0)
    first = await bench.start("a", how="hold")  # from now on this client believes: no gate
    async with bench.worker():
        await bench.ledger.until("begin", 1)
        settings = bench.settings()
        other = TemporalEngine(await connect_client(settings), settings)
        setting = asyncio.create_task(other.set_limits(Limits(max_active=2)))
        while not await limits.gate_in_force(other.client, settings):
            await asyncio.sleep(0.05)
        second = await bench.start("b", how="hold")
        await setting
        third = await bench.start("c")
        await waiting(bench)
        state = await gate_state(bench)
        assert {permit.owner for permit in state.holders} == {first, second}
        assert {permit.owner for permit in state.waiting} == {third}


async def test_a_terminated_holders_permit_is_used_again(bench: Bench) -> None:
    await bench.engine.set_limits(Limits(max_active=1))
    holder = await bench.start("a", how="hold")
    async with bench.worker():
        await bench.ledger.until("begin", 1)
        waiting = await bench.start("b", how="hold")
        await bench.until_state(waiting, RunState.PENDING)
        await bench.engine.client.get_workflow_handle(holder).terminate("no clean-up runs")
        await bench.ledger.until("begin", 2)
        bench.ledger.release()
        assert await bench.engine.result(waiting, timeout=60) == ["b"]


async def test_a_run_that_waits_for_the_gate_says_pending_and_can_be_cancelled(
    bench: Bench,
) -> None:
    await bench.engine.set_limits(Limits(max_active=0))
    run_id = await bench.start("a")
    async with bench.worker():
        handle = bench.engine.client.get_workflow_handle(run_id)
        await waiting(bench)
        assert (await bench.engine.get(run_id)).state is RunState.PENDING
        await bench.engine.cancel(run_id)
        await bench.until_state(run_id, RunState.CANCELLED)
        assert (await handle.describe()).close_time
        assert (await gate_state(bench)).waiting == ()
    assert bench.ledger.entries() == []


async def test_at_rest_nobody_holds_anything_and_without_limits_the_gate_ends(
    bench: Bench,
) -> None:
    await bench.engine.set_limits(Limits(max_active=2, pools={"model": 1}))
    runs = [await bench.start("a", "b") for _ in range(3)]
    async with bench.worker(PARALLEL):
        for run_id in runs:
            await bench.engine.result(run_id, timeout=60)
        state = await gate_state(bench)
        assert (state.holders, state.waiting) == ((), ())
        await bench.engine.set_limits(Limits())
        handle = bench.engine.client.get_workflow_handle(bench.settings().gate)
        await handle.result()
        later = await bench.start("c")
        await bench.engine.result(later, timeout=60)
    assert await bench.events(later, "SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED") == []


async def test_limits_that_come_late_count_the_runs_that_are_active(bench: Bench) -> None:
    first = await bench.start("a", how="hold")
    async with bench.worker():
        await bench.ledger.until("begin", 1)
        await bench.listed(first)
        await bench.engine.set_limits(Limits(max_active=1))
        second = await bench.start("b", how="hold")
        await waiting(bench)
        assert {p.owner for p in (await gate_state(bench)).holders} == {first}
        assert len(bench.ledger.entries("begin")) == 1
        bench.ledger.release()
        for run_id in (first, second):
            await bench.engine.result(run_id, timeout=60)


async def test_a_gate_that_somebody_terminated_is_rebuilt_by_setting_the_limits(
    bench: Bench,
) -> None:
    limits = Limits(max_active=1)
    await bench.engine.set_limits(limits)
    first = await bench.start("a", how="hold")
    async with bench.worker():
        await bench.ledger.until("begin", 1)
        second = await bench.start("b", how="hold")
        await waiting(bench)
        for run_id in (first, second):
            await bench.listed(run_id)
        gate = bench.engine.client.get_workflow_handle(bench.settings().gate)
        await gate.terminate("by hand")
        assert await bench.engine.limits() == Limits()
        await bench.engine.set_limits(limits)
        await waiting(bench)
        assert {p.owner for p in (await gate_state(bench)).holders} == {first}
        assert len(bench.ledger.entries("begin")) == 1
        bench.ledger.release()
        for run_id in (first, second):
            await bench.engine.result(run_id, timeout=60)


async def test_the_gate_continues_as_new_and_forgets_nobody(knobs_bench: Bench) -> None:
    bench = knobs_bench  # its server suggests it after 60 events
    await bench.engine.set_limits(Limits(max_active=2, pools={"model": 2}))
    gate = bench.engine.client.get_workflow_handle(bench.settings().gate)
    first_run = (await gate.describe()).run_id
    runs = [await bench.start(*"abcd") for _ in range(6)]
    async with bench.worker(PARALLEL):
        for run_id in runs:
            await bench.engine.result(run_id, timeout=100)
        assert (await gate.describe()).run_id != first_run, "it did continue as new"
        state = await gate_state(bench)
        assert (state.holders, state.waiting) == ((), ())
    assert peak(bench) <= 2


async def test_limits_hold_while_workers_are_killed(bench: Bench) -> None:
    """Logically: one permit, at most one attempt that the server believes in."""
    await bench.engine.set_limits(Limits(max_active=3, pools={"model": 2}))
    runs = [await bench.start("a", "b") for _ in range(5)]
    processes = [await bench.process("PARALLEL") for _ in range(2)]
    for n in (3, 6):
        await bench.ledger.until("end", n)
        await bench.kill(processes.pop(0))
        processes.append(await bench.process("PARALLEL"))
    for run_id in runs:
        assert await bench.engine.result(run_id, timeout=100) == ["a", "b"]
    async with bench.worker():
        state = await gate_state(bench)
        assert (state.holders, state.waiting) == ((), ())


def peak(bench: Bench) -> int:
    """The most calls that were in flight at one time."""
    changes = {"begin": 1, "end": -1, "cancelled": -1}
    now = most = 0
    for entry in sorted(bench.ledger.entries(), key=lambda e: e["at"]):
        now += changes[entry["event"]]
        most = max(most, now)
    return most
