"""The driver is stopped: by a cancellation, a suspension, a lost lease, its own process's death."""

from __future__ import annotations

import asyncio
import time

import pytest

from hand_rolled import operations
from tests.hand_rolled.bench import Store
from tests.hand_rolled.driving import Ask, Held, Question, app, ask_twice, in_state, working
from two_workers import Call, RunCancelled, RunState, do

# Cancelled


async def test_the_push_reaches_the_step_long_before_a_heartbeat(store: Store) -> None:
    run_id, held = await store.enqueue(), Held()
    store.database.settings = store.database.settings.model_copy(update={"notify": True})
    slow = {"lease_ttl": 120, "heartbeat_interval": 30, "poll_interval": 30}
    async with working(store, app(ask_twice, held), **slow):
        async with asyncio.timeout(60):
            await held.begun.get()
        await store.until(lambda: _listening(store))
        asked = time.monotonic()
        await store.engine.cancel(run_id)
        with pytest.raises(RunCancelled):
            await store.engine.result(run_id, timeout=60)
    assert held.cancelled_at[0] - asked < 10, "a third of the heartbeat interval"


async def _listening(store: Store) -> bool:
    return await store.value(
        "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() "
        "AND query LIKE 'LISTEN%%'"
    )


async def test_without_the_push_a_heartbeat_brings_the_cancellation(store: Store) -> None:
    run_id, held = await store.enqueue(), Held()
    async with working(store, app(ask_twice, held), notify=False, heartbeat_interval=0.5):
        await held.begun.get()
        await store.engine.cancel(run_id)
        with pytest.raises(RunCancelled):
            await store.engine.result(run_id, timeout=60)
    assert len(held.cancelled_at) == 1


async def test_an_agent_that_asks_for_more_while_it_is_ended_is_refused(store: Store) -> None:
    held = Held()

    async def stubborn(question: Question) -> str:
        try:
            return await do(Ask(text="one"))
        finally:
            await do(Ask(text="cleanup"))

    run_id = await store.enqueue()
    async with working(store, app(stubborn, held), notify=False, heartbeat_interval=0.5):
        await held.begun.get()
        await store.engine.cancel(run_id)
        with pytest.raises(RunCancelled):
            await store.engine.result(run_id, timeout=60)
    assert held.begun.empty(), "the cleanup was never begun"


# Suspended


async def test_a_suspended_run_stops_at_its_next_boundary_and_goes_on_later(store: Store) -> None:
    held = Held()
    run_id = await store.enqueue()
    async with working(store, app(ask_twice, held), heartbeat_interval=0.3):
        await held.begun.get()
        await operations.suspend(store.database, run_id)
        await asyncio.sleep(1)
        assert held.cancelled_at == [], "a suspension interrupts nothing"
        held.go.set()
        await store.until(lambda: in_state(store, run_id, "suspended"))
        await operations.resume(store.database, run_id)
        assert await store.engine.result(run_id, timeout=60) == ["one", "two"]
    assert held.begun.qsize() == 1


# Taken away


async def test_losing_the_lease_stops_an_uninterruptible_step_too(store: Store) -> None:
    run_id, held = await store.enqueue(), Held()
    served = app(ask_twice, held, uninterruptible=True)
    async with working(store, served, heartbeat_interval=0.3):
        await held.begun.get()
        await store.rows("UPDATE runs SET lease_generation = 2, lease_owner = 'someone else'")
        async with asyncio.timeout(30):
            while not held.cancelled_at:
                await asyncio.sleep(0.02)
    assert (await store.engine.get(run_id)).owner == "someone else"


async def test_a_worker_declared_dead_goes_on_under_a_new_name(store: Store) -> None:
    held = Held()
    run_id = await store.enqueue()
    async with working(store, app(ask_twice, held), heartbeat_interval=0.3) as worker_id:
        first = await held.begun.get()
        await store.rows("UPDATE workers SET dead_at = clock_timestamp()")
        second = await held.begun.get()
        held.go.set()
        assert await store.engine.result(run_id, timeout=60) == ["one", "two"]
    assert (first.fence, second.fence) == ((1,), (2,))
    names = await store.rows("SELECT worker_id FROM workers ORDER BY number")
    assert [row["worker_id"] for row in names] == [worker_id, f"{worker_id}~1"]
    assert len(held.cancelled_at) == 1


async def test_a_suspect_runs_alone_until_it_records_a_step(store: Store) -> None:
    held = Held()

    async def first_holds(step: Ask, call: Call) -> str:
        if call.run_id == "suspect" and step.text == "one":
            return await held(step, call)
        return step.text

    await store.enqueue("suspect")
    await store.rows("UPDATE runs SET suspect = true, crashes = 2")
    other = None
    async with working(store, app(ask_twice, first_holds)):
        await held.begun.get()
        other = await store.enqueue()
        await asyncio.sleep(0.5)
        assert (await store.engine.get(other)).state is RunState.PENDING
        held.go.set()
        await store.engine.result(other, timeout=60)
        await store.engine.result("suspect", timeout=60)
    assert not (await store.row("suspect"))["suspect"]
