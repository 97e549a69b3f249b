"""Signals and parking: nothing is lost or delivered twice, also when they race."""

from __future__ import annotations

import asyncio

import pytest

from hand_rolled import lifecycle
from hand_rolled.entries import Place
from hand_rolled.waits import sleep, take_signal
from tests.hand_rolled.bench import Store
from tests.hand_rolled.states import FINAL, in_state
from two_workers import RunClosed


async def test_a_signal_wakes_a_waiting_run(store: Store) -> None:
    run_id, _ = await in_state(store, "waiting")
    await store.engine.signal(run_id, "go", 1, signal_id="1")
    assert (await store.row(run_id))["status"] == "pending"


@pytest.mark.parametrize("state", ["pending", "scheduled", "suspended"])
async def test_a_signal_is_kept_for_a_run_that_does_not_wait(store: Store, state: str) -> None:
    run_id, _ = await in_state(store, state)
    await store.engine.signal(run_id, "go", 1, signal_id="1")
    row = await store.row(run_id)
    assert (row["status"], row["signals"]) == (state, 1)


@pytest.mark.parametrize("state", FINAL)
async def test_an_ended_run_takes_no_signal(store: Store, state: str) -> None:
    run_id, _ = await in_state(store, state)
    with pytest.raises(RunClosed):
        await store.engine.signal(run_id, "go", 1, signal_id="1")


async def test_a_signal_that_was_delivered_may_be_sent_again_even_after_the_end(
    store: Store,
) -> None:
    run_id, _ = await in_state(store, "waiting")
    await store.engine.signal(run_id, "go", 1, signal_id="1")
    await store.engine.cancel(run_id)
    await store.engine.signal(run_id, "go", 1, signal_id="1")
    assert (await store.row(run_id))["signals"] == 1


async def test_a_run_does_not_park_over_a_signal_it_has_not_seen(store: Store) -> None:
    run_id = await store.enqueue()
    held = await (await store.hand()).claim_one()
    taken, _, seen = await take_signal(held.journal, Place(0, 0), "go", "wait:1")
    assert not taken
    await store.engine.signal(run_id, "go", "hello", signal_id="1")
    assert await held.ending.leave("waiting", signals_seen=seen) is None, "still ours: look again"
    taken, payload, _ = await take_signal(held.journal, Place(0, 0), "go", "wait:1")
    assert (taken, payload) == (True, "hello")


async def test_parking_that_waited_for_a_signal_does_not_park(store: Store) -> None:
    run_id = await store.enqueue()
    held = await (await store.hand()).claim_one()
    async with store.holding("UPDATE runs SET signals = signals + 1 WHERE run_id = %s", run_id):
        park = asyncio.create_task(held.ending.leave("waiting", signals_seen=0))
        await store.until_blocked()
    assert await park is None
    assert (await store.row(run_id))["status"] == "running"


async def test_a_look_that_waited_for_a_signals_delivery_does_not_claim_to_have_seen_it(
    store: Store,
) -> None:
    """The row has the new count, but the signal came too late for the statement's snapshot."""
    run_id = await store.enqueue()
    held = await (await store.hand()).claim_one()
    signal = {"run_id": run_id, "signal_id": "1", "name": "go", "payload": "1"}
    async with await store.connect() as connection, connection.transaction():
        await connection.execute(lifecycle.SIGNAL, signal)
        look = asyncio.create_task(take_signal(held.journal, Place(0, 0), "go", "wait:1"))
        await store.until_blocked()
    taken, _, seen = await look
    assert (taken, seen) == (False, 0)
    assert await held.ending.leave("waiting", signals_seen=seen) is None, "still ours: look again"
    assert (await take_signal(held.journal, Place(0, 0), "go", "wait:1"))[:2] == (True, 1)


async def test_the_same_signal_from_many_clients_counts_once(store: Store) -> None:
    run_id = await store.enqueue()
    await asyncio.gather(
        *(store.engine.signal(run_id, "go", i, signal_id=str(i % 3)) for i in range(30))
    )
    assert (await store.row(run_id))["signals"] == 3
    seqs = await store.rows("SELECT seq FROM signals ORDER BY seq")
    assert [row["seq"] for row in seqs] == [1, 2, 3]


async def test_a_signal_is_taken_once_also_when_the_answer_was_lost(store: Store) -> None:
    run_id = await store.enqueue()
    for i in (1, 2):
        await store.engine.signal(run_id, "go", i, signal_id=str(i))
    held = await (await store.hand()).claim_one()
    for _ in range(2):
        taken, payload, _ = await take_signal(held.journal, Place(0, 0), "go", "wait:1")
        assert (taken, payload) == (True, 1)
    assert (await take_signal(held.journal, Place(1, 0), "go", "wait:1"))[1] == 2


async def test_a_sleep_keeps_its_end_through_a_takeover(store: Store) -> None:
    run_id = await store.enqueue()
    held = await (await store.hand()).claim_one()
    first = await sleep(held.journal, Place(0, 0), 3600)
    await store.expire(run_id)
    successor = await (await store.hand()).take_over()
    second = await sleep(successor.journal, Place(0, 0), 3600)
    assert second < first
