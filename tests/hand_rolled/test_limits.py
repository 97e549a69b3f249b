"""Limits: exact with many claimers and with crashes, fair, and nothing leaks."""

from __future__ import annotations

import asyncio
import random

import pytest

from hand_rolled.entries import Place
from hand_rolled.operations import reconcile
from tests.hand_rolled.bench import Store
from tests.hand_rolled.states import Count, held_runs
from two_workers import Limits

FIRST = Place(0, 0)
CLAIMERS = 12


async def work_off(store: Store, runs: int) -> list[str]:
    """Twelve workers claim and finish `runs` runs. Returns the tenants in the order of claims."""
    tenants = {row["run_id"]: row["tenant"] for row in await store.rows("SELECT * FROM runs")}
    served: list[str] = []

    async def claimer(seed: int) -> None:
        dice = random.Random(seed)
        hand = await store.hand()
        while len(served) < runs:
            for held in await hand.claim(dice.choice([1, 1, 3])):
                served.append(tenants[held.run_id])
                await asyncio.sleep(dice.uniform(0, 0.02))
                await held.ending.finish(result=None)
            await asyncio.sleep(dice.uniform(0, 0.01))

    async with asyncio.timeout(90), asyncio.TaskGroup() as group:
        for seed in range(CLAIMERS):
            group.create_task(claimer(seed))
    return served


async def most_at_once(store: Store) -> dict[str, int]:
    """From the history of ownership, whose times were taken under the locks."""
    counts: dict[str, Count] = {}
    for row in await store.rows(
        "SELECT r.tenant, o.event FROM ownership o JOIN runs r USING (run_id) ORDER BY o.at"
    ):
        for name in ("all", row["tenant"]):
            counts.setdefault(name, Count()).change(1 if row["event"] == "claimed" else -1)
    return {name: count.peak for name, count in counts.items()}


async def enqueue_many(store: Store, runs: dict[str, int]) -> None:
    for tenant, count in runs.items():
        await store.enqueue(tenant=tenant)
        await store.rows(
            "INSERT INTO runs (run_id, kind, tenant, priority, payload) "
            "SELECT %s || n, 'test', %s, 3, 'null' FROM generate_series(2, %s) n",
            f"{tenant}-", tenant, count,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("limits", "allowed", "reached"),
    [
        (Limits(max_active=3), {"all": 3}, "all"),
        (Limits(max_active_per_tenant=2), {"a": 2, "b": 2, "c": 2}, "abc"),
        (Limits(max_active_per_tenant=1, tenants={"a": 4}), {"a": 4, "b": 1, "c": 1}, "abc"),
        (Limits(max_active=4, max_active_per_tenant=3), {"all": 4, "a": 3, "b": 3, "c": 3}, "all"),
    ],
)
async def test_no_more_runs_are_active_than_allowed(
    store: Store, limits: Limits, allowed: dict[str, int], reached: str
) -> None:
    await store.engine.set_limits(limits)
    await enqueue_many(store, {"a": 40, "b": 40, "c": 40})
    await work_off(store, 120)
    most = await most_at_once(store)
    assert all(most[name] <= allowed[name] for name in allowed), most
    for name in ["all"] if reached == "all" else reached:
        assert most[name] == allowed[name], "a limit that is never reached proves nothing"
    assert await reconcile(store.database) == []
    assert await store.value("SELECT sum(active) FROM tenants") == 0
    assert await store.value("SELECT active FROM active_total") == 0


async def test_a_tenant_that_floods_the_queue_starves_nobody(store: Store) -> None:
    await store.engine.set_limits(Limits(max_active_per_tenant=3))
    small = {f"tenant-{i}": 10 for i in range(19)}
    await enqueue_many(store, {"flood": 2000} | small)
    served = await work_off(store, 400)
    of_flood = served[:190].count("flood")
    assert of_flood <= 30, "its share of 20 tenants is 10, and it may run 3 at a time"
    assert set(small) <= set(served[:200])


async def test_a_takeover_keeps_the_slot_and_a_backed_off_orphan_gives_it_up(store: Store) -> None:
    await store.engine.set_limits(Limits(max_active=1))
    run_id = await store.enqueue()
    await (await store.hand()).claim_one()
    for active in (1, 0):
        await store.expire(run_id)
        await (await store.hand()).reclaim()
        assert await store.value("SELECT active FROM active_total") == active
    assert await reconcile(store.database) == []


@pytest.mark.parametrize("target", ["pending", "scheduled", "waiting", "finish", "cancelled"])
async def test_every_way_out_gives_the_slot_back(store: Store, target: str) -> None:
    await store.engine.set_limits(Limits(max_active_per_tenant=1))
    run_id = await store.enqueue()
    held = await (await store.hand()).claim_one()
    match target:
        case "finish":
            await held.ending.finish(result=1)
        case "cancelled":
            await store.engine.cancel(run_id)
            await store.expire(run_id)
            await (await store.hand()).reclaim(free=0)
        case _:
            await held.ending.leave(target, wait=60)
    assert await store.value("SELECT active FROM tenants") == 0
    assert await reconcile(store.database) == []


async def test_limits_switched_on_count_the_runs_that_run_already(store: Store) -> None:
    for _ in range(3):
        await store.enqueue()
    hand = await store.hand()
    running = await hand.claim(2)
    await store.engine.set_limits(Limits(max_active=2))
    assert await hand.claim(1) == []
    await running[0].ending.finish(result=1)
    assert len(await hand.claim(1)) == 1
    assert await reconcile(store.database) == []


async def test_limits_switched_off_stop_counting_but_count_down(store: Store) -> None:
    await store.engine.set_limits(Limits(max_active=1))
    for _ in range(3):
        await store.enqueue()
    hand = await store.hand()
    counted = await hand.claim(3)
    await store.engine.set_limits(Limits())
    uncounted = await hand.claim(3)
    assert (len(counted), len(uncounted)) == (1, 2)
    for held in counted + uncounted:
        await held.ending.finish(result=1)
    assert await store.value("SELECT active FROM active_total") == 0


async def test_a_lowered_limit_waits_for_claims_in_flight(store: Store) -> None:
    """Grants never exceed the limit in force at the grant."""
    for _ in range(40):
        await store.enqueue()
    hands = [await store.hand() for _ in range(8)]
    lowered = asyncio.Event()
    after: list[int] = []

    async def claim(hand) -> None:
        while not lowered.is_set():
            await hand.claim(1)
        after.append(len(await hand.claim(5)))

    async with asyncio.TaskGroup() as group:
        for hand in hands:
            group.create_task(claim(hand))
        await store.engine.set_limits(Limits(max_active=0))
        lowered.set()
    assert after == [0] * 8
    assert await reconcile(store.database) == []


# The reconciler


async def test_the_reconciler_finds_and_repairs_planted_drift(store: Store) -> None:
    await store.engine.set_limits(Limits(max_active=5, pools={"model": 5}))
    [held] = await held_runs(store, 1, budget=1000)
    await held.slots.try_take(FIRST, "model")
    await held.slots.try_reserve(FIRST, 1, 400)
    assert await reconcile(store.database) == []
    await store.rows("UPDATE tenants SET active = 3")
    await store.rows("UPDATE active_total SET active = 0")
    await store.rows("UPDATE pools SET calls = 2")
    await store.rows("UPDATE runs SET reserved = 1")
    drift = {(it.what, it.counted, it.found) for it in await reconcile(store.database)}
    assert drift == {
        ("active runs of tenant default", 3, 1),
        ("active runs", 0, 1),
        ("calls of pool model", 2, 1),
        (f"reserved by run {held.run_id}", 1, 400),
    }
    assert await reconcile(store.database) == []
