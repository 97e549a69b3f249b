"""The engine contract, part 3: budgets and the three limits."""

from __future__ import annotations

import asyncio

import pytest

from tests.contract import agents
from tests.contract.conftest import Bench
from two_workers import Limits, RunFailed


async def test_a_run_reports_what_it_cost(bench: Bench) -> None:
    run = bench.run(steps=["a", "b"], how="price:300")
    await bench.engine.start(run)
    async with bench.worker(agents.in_sequence):
        await bench.engine.result(run.run_id, timeout=60)
    assert (await bench.engine.get(run.run_id)).cost == 600


async def test_a_step_that_could_pass_the_budget_is_not_begun(bench: Bench) -> None:
    run = bench.run(steps=["a", "b", "c"], how="price:300").model_copy(update={"budget": 1500})
    await bench.engine.start(run)
    async with bench.worker(agents.in_sequence):
        with pytest.raises(RunFailed, match=r"\$0\.0015, \$0\.0006 are.* to \$0\.0010;"):
            await bench.engine.result(run.run_id, timeout=60)
    view = await bench.engine.get(run.run_id)
    assert view.cost == 600, "each worst case is 1000: a third step could have reached 1600"
    assert len(bench.probe.begun) == 2


async def test_limits_are_read_back_as_they_were_set(bench: Bench) -> None:
    limits = Limits(max_active=7, max_active_per_tenant=3, tenants={"big": 5}, pools={"model": 2})
    await bench.engine.set_limits(limits)
    assert await bench.engine.limits() == limits


@pytest.mark.parametrize(
    ("limits", "allowed"),
    [
        (Limits(max_active=2), 2),
        (Limits(max_active_per_tenant=1), 2),
        (Limits(max_active_per_tenant=1, tenants={"one": 2}), 3),
    ],
)
async def test_active_runs_never_exceed_the_limit(
    bench: Bench, limits: Limits, allowed: int
) -> None:
    await bench.engine.set_limits(limits)
    runs = [
        bench.run(steps=["a"], how="hold").model_copy(update={"tenant": tenant})
        for tenant in ("one", "one", "one", "two", "two", "two")
    ]
    for run in runs:
        await bench.engine.start(run)
    async with bench.worker(agents.in_sequence):
        await bench.probe.until(lambda: bench.probe.in_flight.total() == allowed)
        await asyncio.sleep(0.5)  # a chance to do wrong: nothing may follow
        assert bench.probe.peak == allowed
        bench.probe.gate.set()
        for run in runs:
            await bench.engine.result(run.run_id, timeout=60)
    assert bench.probe.peak <= allowed


async def test_calls_of_a_pool_never_exceed_its_limit_over_all_runs(bench: Bench) -> None:
    await bench.engine.set_limits(Limits(pools={"model": 2}))
    runs = [bench.run(steps=["a", "b"], how="hold") for _ in range(3)]
    for run in runs:
        await bench.engine.start(run)
    async with bench.worker(agents.in_parallel), bench.worker(agents.in_parallel):
        await bench.probe.until(lambda: bench.probe.in_flight.total() == 2)
        await asyncio.sleep(0.5)
        assert bench.probe.peak == 2
        bench.probe.gate.set()
        for run in runs:
            await bench.engine.result(run.run_id, timeout=60)
    assert bench.probe.peak == 2


async def test_raising_a_limit_lets_waiting_runs_in(bench: Bench) -> None:
    await bench.engine.set_limits(Limits(max_active=1))
    runs = [bench.run(steps=["a"], how="hold") for _ in range(3)]
    for run in runs:
        await bench.engine.start(run)
    async with bench.worker(agents.in_sequence):
        await bench.probe.until(lambda: bench.probe.in_flight.total() == 1)
        await bench.engine.set_limits(Limits(max_active=3))
        await bench.probe.until(lambda: bench.probe.in_flight.total() == 3)
        bench.probe.gate.set()
        for run in runs:
            await bench.engine.result(run.run_id, timeout=60)
