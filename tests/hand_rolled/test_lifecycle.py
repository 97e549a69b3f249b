"""Each transition, from each state, and its races."""

from __future__ import annotations

import asyncio

import pytest

from hand_rolled import operations
from tests.hand_rolled.bench import KIND, Store
from tests.hand_rolled.states import FINAL, OPEN, in_state
from two_workers import BadInput, Run, RunNotFound


@pytest.mark.parametrize("state", OPEN)
async def test_cancel_ends_a_run_that_nobody_owns_at_once(store: Store, state: str) -> None:
    run_id, _ = await in_state(store, state)
    view = await store.engine.cancel(run_id, reason="no longer needed")
    assert (view.state, view.cancel_requested) == ("cancelled", True)
    assert view.closed_at is not None


@pytest.mark.parametrize("state", FINAL)
async def test_cancel_leaves_an_ended_run_as_it_is(store: Store, state: str) -> None:
    run_id, _ = await in_state(store, state)
    before = await store.row(run_id)
    await store.engine.cancel(run_id)
    assert await store.row(run_id) == before


@pytest.mark.parametrize(
    "end",
    [
        lambda held: held.ending.finish(result="done"),
        lambda held: held.ending.finish(failure="broken"),
        lambda held: held.ending.leave("pending"),
        lambda held: held.ending.leave("scheduled", wait=1),
        lambda held: held.ending.leave("waiting", signals_seen=0),
    ],
)
async def test_a_requested_cancellation_beats_whatever_the_owner_does_next(
    store: Store, end
) -> None:
    run_id = await store.enqueue()
    held = await (await store.hand()).claim_one()
    assert (await store.engine.cancel(run_id)).state == "running"
    assert await end(held) == "cancelled"
    row = await store.row(run_id)
    assert (row["status"], row["result"]) == ("cancelled", None)


async def test_a_finish_that_waited_for_a_cancellation_ends_cancelled(store: Store) -> None:
    run_id = await store.enqueue()
    held = await (await store.hand()).claim_one()
    async with store.holding("UPDATE runs SET cancel_requested = true WHERE run_id = %s", run_id):
        finish = asyncio.create_task(held.ending.finish(result="done"))
        await store.until_blocked()
    assert await finish == "cancelled"


async def test_a_cancellation_that_waited_for_a_finish_changes_nothing(store: Store) -> None:
    run_id = await store.enqueue()
    await (await store.hand()).claim_one()
    finish = (
        "UPDATE runs SET status = 'succeeded', closed_at = now(), lease_owner = NULL, "
        "lease_expires_at = NULL WHERE run_id = %s"
    )
    async with store.holding(finish, run_id):
        cancel = asyncio.create_task(store.engine.cancel(run_id))
        await store.until_blocked()
    assert (await cancel).state == "succeeded"


async def test_a_cancellation_that_races_with_a_claim_is_never_lost(store: Store) -> None:
    for _ in range(20):
        run_id = await store.enqueue()
        hand = await store.hand()
        claimed, _ = await asyncio.gather(hand.claim(), store.engine.cancel(run_id))
        for held in claimed:
            await held.ending.finish(result=1)
        assert (await store.row(run_id))["status"] == "cancelled"


async def test_a_cancelled_run_is_never_claimed_or_reclaimed(store: Store) -> None:
    run_id = await store.enqueue()
    await store.engine.cancel(run_id)
    hand = await store.hand()
    assert await hand.claim() == []
    assert await hand.reclaim() == []


async def test_the_heartbeat_brings_requests(store: Store) -> None:
    run_id = await store.enqueue()
    hand = await store.hand()
    held = await hand.claim_one()
    [row] = await hand.heartbeat(held)
    assert (row["cancel_requested"], row["suspend_requested"]) == (False, False)
    await operations.suspend(store.database, run_id)
    await store.engine.cancel(run_id)
    [row] = await hand.heartbeat(held)
    assert (row["cancel_requested"], row["suspend_requested"]) == (True, True)


# Suspension


@pytest.mark.parametrize("state", ["pending", "scheduled", "waiting"])
async def test_suspend_and_resume(store: Store, state: str) -> None:
    run_id, _ = await in_state(store, state)
    assert (await operations.suspend(store.database, run_id)).state == "suspended"
    assert await (await store.hand()).claim() == []
    assert (await operations.suspend(store.database, run_id)).state == "suspended"
    assert (await operations.resume(store.database, run_id)).state == "pending"


async def test_a_running_run_is_suspended_when_its_owner_lets_go(store: Store) -> None:
    run_id = await store.enqueue()
    held = await (await store.hand()).claim_one()
    assert (await operations.suspend(store.database, run_id)).state == "running"
    assert await held.ending.leave("pending") == "suspended"


async def test_a_suspension_can_be_withdrawn(store: Store) -> None:
    run_id = await store.enqueue()
    held = await (await store.hand()).claim_one()
    await operations.suspend(store.database, run_id)
    await operations.resume(store.database, run_id)
    assert await held.ending.leave("pending") == "pending"


async def test_a_finish_is_not_held_up_by_a_suspension(store: Store) -> None:
    run_id = await store.enqueue()
    held = await (await store.hand()).claim_one()
    await operations.suspend(store.database, run_id)
    assert await held.ending.finish(result=1) == "succeeded"


@pytest.mark.parametrize("state", FINAL)
async def test_an_ended_run_can_be_neither_suspended_nor_resumed(store: Store, state: str) -> None:
    run_id, _ = await in_state(store, state)
    for ask in (operations.suspend, operations.resume):
        with pytest.raises(BadInput, match=state):
            await ask(store.database, run_id)


async def test_an_unknown_run_cannot_be_operated_on(store: Store) -> None:
    for ask in (operations.suspend, operations.resume, operations.redrive):
        with pytest.raises(RunNotFound):
            await ask(store.database, "no-such-run")


# Starting again


async def test_redrive_makes_a_new_run_and_leaves_the_old_one(store: Store) -> None:
    run_id, _ = await in_state(store, "failed")
    before = await store.row(run_id)
    view = await operations.redrive(store.database, run_id)
    assert view.run_id != run_id
    assert view.state == "pending"
    assert await store.row(run_id) == before


@pytest.mark.parametrize("state", ["pending", "waiting", "succeeded"])
async def test_only_what_failed_is_started_again(store: Store, state: str) -> None:
    run_id, _ = await in_state(store, state)
    with pytest.raises(BadInput, match="only a failed or cancelled run"):
        await operations.redrive(store.database, run_id)


# Start


async def test_start_in_the_callers_transaction_shares_its_fate(store: Store) -> None:
    await store.rows("CREATE TABLE orders (id int)")
    hand = await store.hand()
    run = Run(run_id="order-1", kind=KIND)
    async with await store.connect() as connection:
        async with connection.transaction(force_rollback=True):
            await connection.execute("INSERT INTO orders VALUES (1)")
            await store.engine.start(run, conn=connection)
            assert await hand.claim() == [], "not visible before the commit"
        with pytest.raises(RunNotFound):
            await store.engine.get("order-1")
        async with connection.transaction():
            await connection.execute("INSERT INTO orders VALUES (1)")
            await store.engine.start(run, conn=connection)
    assert await store.value("SELECT count(*) FROM orders") == 1
    assert (await hand.claim_one()).run_id == "order-1"


async def test_illegal_states_cannot_be_stored(store: Store) -> None:
    run_id = await store.enqueue()
    for change in (
        "status = 'running'",
        "status = 'succeeded'",
        "lease_owner = 'x', lease_expires_at = now()",
        "holds_slot = true",
        "reserved = 5",
        "status = 'scheduled'",
        "status = 'unknown'",
    ):
        with pytest.raises(Exception, match="check constraint"):
            await store.rows(f"UPDATE runs SET {change} WHERE run_id = %s", run_id)
