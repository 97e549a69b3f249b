"""The pools: calls of one kind, exact over all workers, and no slot is lost with its owner."""

from __future__ import annotations

import asyncio
import random

import pytest

from hand_rolled.entries import Place
from hand_rolled.limits import sweep
from hand_rolled.operations import reconcile
from tests.hand_rolled.bench import Held, Store
from tests.hand_rolled.states import Count, held_runs
from two_workers import Limits

FIRST = Place(0, 0)
CALLERS = 12


async def test_calls_of_a_pool_are_exact_with_many_callers(store: Store) -> None:
    await store.engine.set_limits(Limits(pools={"model": 3}))
    count = Count()

    async def caller(held: Held) -> None:
        for batch in range(4):
            while not await held.slots.try_take(Place(batch, 0), "model"):
                await asyncio.sleep(random.uniform(0, 0.02))
            count.change(+1)
            await asyncio.sleep(0.01)
            count.change(-1)
            await held.record(batch, 0)

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        for held in await held_runs(store, CALLERS):
            group.create_task(caller(held))
    assert count.peak == 3
    assert await store.value("SELECT calls FROM pools") == 0


async def test_a_pool_without_a_limit_writes_nothing(store: Store) -> None:
    [held] = await held_runs(store, 1)
    assert await held.slots.try_take(FIRST, "model")
    assert await store.value("SELECT count(*) FROM pool_calls") == 0


async def test_the_slot_of_a_dead_worker_comes_back(store: Store) -> None:
    await store.engine.set_limits(Limits(pools={"model": 1}))
    [held] = await held_runs(store, 1)
    assert await held.slots.try_take(FIRST, "model")
    await store.expire(held.run_id)
    successor = await (await store.hand()).take_over()
    assert not await successor.slots.try_take(FIRST, "model"), "counted until it is swept"
    assert await sweep(store.database) == 1
    assert await successor.slots.try_take(FIRST, "model")
    assert await sweep(store.database) == 0, "a slot in use is not stale"
    assert await reconcile(store.database) == []


async def test_an_orphan_keeps_no_slot_from_those_who_are_too_busy_to_take_it_over(
    store: Store,
) -> None:
    """A worker whose places are all full of runs that wait for a slot cannot take an orphan over;
    if the orphan kept the slot until then, both would wait for ever."""
    await store.engine.set_limits(Limits(pools={"model": 1}))
    [orphan, waiting] = await held_runs(store, 2)
    assert await orphan.slots.try_take(FIRST, "model")
    assert await sweep(store.database) == 0, "while its lease lasts the slot is its own"
    await store.expire(orphan.run_id)
    assert not await waiting.slots.try_take(FIRST, "model")
    assert await sweep(store.database) == 1
    assert await waiting.slots.try_take(FIRST, "model")
    assert await reconcile(store.database) == []


async def test_a_zombie_gives_back_only_its_own_slot(store: Store) -> None:
    """A semaphore that is released twice lets two in."""
    await store.engine.set_limits(Limits(pools={"model": 1}))
    [zombie] = await held_runs(store, 1)
    await zombie.slots.try_take(FIRST, "model")
    await store.expire(zombie.run_id)
    successor = await (await store.hand()).take_over()
    await sweep(store.database)
    assert await successor.slots.try_take(FIRST, "model")
    with pytest.raises(Exception, match="refused"):
        await zombie.record()
    await sweep(store.database)
    assert await store.value("SELECT calls FROM pools") == 1


async def test_the_limit_of_a_pool_can_go_and_come_back(store: Store) -> None:
    one, two, three = await held_runs(store, 3)
    await store.engine.set_limits(Limits(pools={"model": 1}))
    assert await one.slots.try_take(FIRST, "model")
    assert not await two.slots.try_take(FIRST, "model")
    await store.engine.set_limits(Limits())
    assert await two.slots.try_take(FIRST, "model")
    await store.engine.set_limits(Limits(pools={"model": 1}))
    assert not await three.slots.try_take(FIRST, "model"), "the counted call is still in flight"
    await one.record()
    assert await three.slots.try_take(FIRST, "model")
    assert await reconcile(store.database) == []
