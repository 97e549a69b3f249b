"""Budgets: reserved before a call, settled after it, and never passed."""

from __future__ import annotations

import asyncio

import pytest

from hand_rolled.entries import OpenStep, Place
from hand_rolled.limits import sweep
from hand_rolled.operations import reconcile
from tests.hand_rolled.bench import Store
from tests.hand_rolled.states import held_runs
from two_workers import BudgetExceeded

FIRST = Place(0, 0)


async def test_what_could_pass_the_budget_is_not_begun(store: Store) -> None:
    [held] = await held_runs(store, 1, budget=1000)
    assert await held.slots.try_reserve(Place(0, 0), 1, 600)
    assert not await held.slots.try_reserve(Place(0, 1), 1, 600), "wait: the first may cost less"
    await held.record(0, 0, cost=300)
    assert await held.slots.try_reserve(Place(0, 1), 1, 600)
    await held.record(0, 1, cost=600)
    with pytest.raises(BudgetExceeded, match=r"\$0\.0009 are spent.* to \$0\.000101;"):
        await held.slots.try_reserve(Place(1, 0), 1, 101)
    assert await held.slots.try_reserve(Place(1, 0), 1, 100)


async def test_a_fan_out_never_reserves_more_than_the_budget(store: Store) -> None:
    [held] = await held_runs(store, 1, budget=1000)
    granted = await asyncio.gather(
        *(held.slots.try_reserve(Place(0, i), 1, 300) for i in range(10))
    )
    assert granted.count(True) == 3
    assert (await store.row(held.run_id))["reserved"] == 900


async def test_a_takeover_charges_what_was_under_way_in_full(store: Store) -> None:
    [held] = await held_runs(store, 1, budget=1000)
    await held.slots.try_reserve(FIRST, 1, 400)
    await store.expire(held.run_id)
    await (await store.hand()).take_over()
    row = await store.row(held.run_id)
    assert (row["cost"], row["reserved"]) == (400, 0)
    await sweep(store.database)
    assert await store.value("SELECT count(*) FROM reservations") == 0
    assert await reconcile(store.database) == []


@pytest.mark.parametrize(("charge", "cost"), [(True, 400), (False, 0)])
async def test_a_failed_attempt_is_charged_unless_it_was_refused(
    store: Store, charge: bool, cost: int
) -> None:
    [held] = await held_runs(store, 1, budget=1000)
    await held.slots.try_reserve(FIRST, 1, 400)
    for _ in range(2):  # the answer was lost, it is sent again
        await held.journal.postpone(FIRST, OpenStep(failures=1), wait=0, error="429", charge=charge)
    row = await store.row(held.run_id)
    assert (row["cost"], row["reserved"]) == (cost, 0)


async def test_nothing_stays_reserved_when_a_run_ends(store: Store) -> None:
    [held] = await held_runs(store, 1, budget=1000)
    await held.slots.try_reserve(FIRST, 1, 400)
    await held.ending.leave("pending")
    row = await store.row(held.run_id)
    assert (row["cost"], row["reserved"]) == (400, 0)
