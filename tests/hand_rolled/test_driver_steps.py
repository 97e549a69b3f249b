"""The driver performs a batch: retries, timeouts, siblings, sleeps, signals, the budget."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from tests.hand_rolled.bench import Store
from tests.hand_rolled.driving import (
    Ask,
    Question,
    answer,
    app,
    ask_together,
    ask_twice,
    in_state,
    working,
)
from two_workers import (
    Call,
    PermanentFailure,
    RetryLater,
    RunFailed,
    Sleep,
    WaitForSignal,
    do,
    do_all,
)

# Tried again


async def test_a_run_that_backs_off_holds_no_lease(store: Store) -> None:
    async def busy(step: Ask, call: Call) -> str:
        raise RetryLater("429", after=3600)

    run_id = await store.enqueue()
    async with working(store, app(ask_twice, busy)):
        await store.until(lambda: in_state(store, run_id, "scheduled"))
        row = await store.row(run_id)
    assert row["lease_owner"] is None
    assert (await store.rows("SELECT * FROM open_steps"))[0]["error"] == "RetryLater: 429"


async def test_a_step_that_takes_too_long_is_stopped_and_tried_again(store: Store) -> None:
    attempts: list[int] = []

    async def slow(step: Ask, call: Call) -> str:
        attempts.append(call.attempt)
        if call.attempt < 3:
            await asyncio.sleep(600)
        return step.text

    run_id = await store.enqueue()
    async with working(store, app(ask_twice, slow, timeout=0.2)):
        await store.engine.result(run_id, timeout=60)
    assert attempts == [1, 2, 3, 1, 2, 3]


async def test_a_step_that_cancels_itself_has_failed(store: Store) -> None:
    async def suicidal(step: Ask, call: Call) -> str:
        raise asyncio.CancelledError

    run_id = await store.enqueue()
    async with working(store, app(ask_twice, suicidal)):
        with pytest.raises(RunFailed, match="CancelledError"):
            await store.engine.result(run_id, timeout=60)


# Together


async def test_a_failing_step_does_not_interrupt_its_siblings(store: Store) -> None:
    ended: list[str] = []

    async def perform(step: Ask, call: Call) -> str:
        if step.text == "one":
            raise PermanentFailure("no")
        await asyncio.sleep(0.2)
        ended.append(step.text)
        return step.text

    run_id = await store.enqueue()
    async with working(store, app(ask_together, perform)):
        with pytest.raises(RunFailed, match="PermanentFailure: no"):
            await store.engine.result(run_id, timeout=60)
    assert sorted(ended) == ["three", "two"]


async def test_a_fan_out_over_the_budget_fails_after_the_calls_that_were_paid_for(
    store: Store,
) -> None:
    """Three calls, each of which may cost 400 and does: two fit, and are not thrown away."""

    async def price(step: Ask, call: Call) -> str:
        await asyncio.sleep(0.2)
        return step.text

    run_id = await store.enqueue(budget=1000)
    served = app(ask_together, price, worst_case=lambda step: 400, cost=lambda result: 400)
    async with working(store, served):
        with pytest.raises(RunFailed, match="BudgetExceeded"):
            await store.engine.result(run_id, timeout=60)
    assert len(await store.engine.steps(run_id)) == 2
    assert (await store.engine.get(run_id)).cost == 800


# Waits


async def test_effects_of_a_batch_come_before_its_waits(store: Store) -> None:
    async def agent(question: Question) -> list[Any]:
        return await do_all([Sleep(seconds=0.3), WaitForSignal(name="go"), Ask(text="work")])

    run_id = await store.enqueue()
    async with working(store, app(agent, answer)):
        await store.until(lambda: in_state(store, run_id, "waiting"))
        kinds = [record.kind for record in await store.engine.steps(run_id)]
        assert "ask" in kinds
        await store.engine.signal(run_id, "go", {"by": "me"}, signal_id="1")
        assert await store.engine.result(run_id, timeout=60) == [None, {"by": "me"}, "work"]


async def test_no_signal_is_slept_through(store: Store) -> None:
    """Signals from many clients, while the runs look, park and wake up."""

    async def agent(question: Question) -> list[Any]:
        return [await do(WaitForSignal(name="go")) for _ in range(3)]

    runs = [await store.enqueue() for _ in range(12)]

    async def signal(run_id: str, number: int) -> None:
        await asyncio.sleep(random.uniform(0, 1.5))
        await store.engine.signal(run_id, "go", number, signal_id=str(number))

    async with working(store, app(agent, answer)), working(store, app(agent, answer)):
        await asyncio.gather(*(signal(run_id, n) for run_id in runs for n in range(3)))
        for run_id in runs:
            assert sorted(await store.engine.result(run_id, timeout=60)) == [0, 1, 2]
