"""Reclaim: who takes over, and what becomes of a run whose owner is gone."""

from __future__ import annotations

import asyncio

import pytest

from hand_rolled.database import Database
from hand_rolled.settings import Settings
from tests.hand_rolled.bench import Hand, Held, Store


async def crashed(store: Store, hand: Hand | None = None, **more) -> Held:
    """A run whose worker vanished: its lease ran out."""
    await store.enqueue(**more)
    hand = hand or await store.hand()
    held = await hand.claim_one()
    await store.expire(held.run_id)
    return held


async def test_an_expired_lease_is_taken_over_under_the_next_generation(store: Store) -> None:
    held = await crashed(store)
    taken = await (await store.hand()).take_over()
    assert (taken.run_id, taken.lease.generation) == (held.run_id, held.lease.generation + 1)
    assert (await store.row(held.run_id))["crashes"] == 1


async def test_a_live_lease_is_not_taken_over(store: Store) -> None:
    await store.enqueue()
    await (await store.hand()).claim_one()
    assert await (await store.hand()).reclaim() == []


async def test_the_runs_of_a_worker_declared_dead_are_taken_over_before_their_leases_end(
    store: Store,
) -> None:
    await store.enqueue()
    dead = await store.hand()
    held = await dead.claim_one()
    await store.declare_dead(dead)
    [orphan] = await (await store.hand()).reclaim()
    assert (orphan.run_id, orphan.reason, orphan.became) == (held.run_id, "died", "running")


async def test_two_survivors_never_take_over_the_same_run(store: Store) -> None:
    for _ in range(20):
        await crashed(store)
    hands = [await store.hand() for _ in range(4)]
    taken = await asyncio.gather(*(hand.reclaim(20) for hand in hands))
    assert sorted(it.run_id for found in taken for it in found) == sorted(
        {it.run_id for found in taken for it in found}
    )
    generations = await store.rows("SELECT DISTINCT lease_generation FROM runs")
    for hand in hands:
        await hand.reclaim(20)
    assert [row["lease_generation"] for row in generations] == [2]


async def test_a_takeover_is_bounded_by_free_capacity(store: Store) -> None:
    for _ in range(3):
        await crashed(store)
    hand = await store.hand()
    assert len(await hand.reclaim(free=2)) == 2
    assert await hand.reclaim(free=0) == []


async def test_limits_do_not_gate_a_takeover(store: Store) -> None:
    from two_workers import Limits

    await store.engine.set_limits(Limits(max_active=1))
    held = await crashed(store)
    assert (await (await store.hand()).take_over()).run_id == held.run_id
    assert await store.value("SELECT active FROM active_total") == 1


async def test_a_reclaim_that_waited_for_a_renewal_finds_a_live_lease(store: Store) -> None:
    held = await crashed(store)
    renew = (
        "UPDATE runs SET lease_expires_at = clock_timestamp() + interval '60 s' WHERE run_id = %s"
    )
    async with store.holding(renew, held.run_id):
        # SKIP LOCKED: it does not even wait
        assert await (await store.hand()).reclaim() == []
    assert await (await store.hand()).reclaim() == []


async def test_a_requested_cancellation_ends_an_orphan_even_without_capacity_or_kind(
    store: Store,
) -> None:
    held = await crashed(store)
    await store.engine.cancel(held.run_id)
    other = await store.hand(kinds=["something else"])
    [orphan] = await other.reclaim(free=0)
    assert orphan.became == "cancelled"
    row = await store.row(held.run_id)
    assert (row["lease_generation"], row["lease_owner"]) == (2, None)
    assert row["closed_at"] is not None


async def test_a_requested_suspension_takes_an_orphan_out(store: Store) -> None:
    from hand_rolled.operations import suspend

    held = await crashed(store)
    await suspend(store.database, held.run_id)
    [orphan] = await (await store.hand()).reclaim()
    assert orphan.became == "suspended"


async def test_an_outage_of_the_server_is_nobodys_crash(store: Store) -> None:
    held = await crashed(store)
    [orphan] = await (await store.hand()).reclaim(in_contact=False)
    assert (orphan.reason, orphan.became) == ("outage", "running")
    row = await store.row(held.run_id)
    assert (row["crashes"], row["outages"]) == (0, 1)


async def test_a_worker_takes_back_its_own_expired_run_only_after_dropping_it(store: Store) -> None:
    hand = await store.hand()
    held = await crashed(store, hand)
    assert await hand.reclaim(known=[held.run_id]) == []
    assert (await hand.take_over()).lease.generation == 2


async def crash_again(store: Store, held: Held) -> Held | None:
    await store.expire(held.run_id)
    hand = await store.hand()
    [orphan] = await hand.reclaim()
    return None if orphan.claimed is None else hand.held(orphan.claimed)


async def test_crashes_in_a_row_make_a_suspect_that_runs_alone_and_then_fails(store: Store) -> None:
    held = await crashed(store)
    second = await crash_again(store, held)
    assert second is not None
    assert await crash_again(store, second) is None
    row = await store.row(held.run_id)
    assert (row["status"], row["suspect"], row["crashes"]) == ("scheduled", True, 2)
    for solo in (1, 2, 3):
        await store.make_due()
        hand = await store.hand()
        await hand.reclaims.promote()
        assert await hand.claim() == [], "a suspect is not among the ordinary work"
        [alone] = await hand.claim(suspect=True)
        assert alone.claimed.alone
        await crash_again(store, alone)
        row = await store.row(held.run_id)
        assert row["solo_crashes"] == solo
    assert row["status"] == "failed"
    assert row["failure"] == "Poison: its worker died 3 times while it ran alone"


async def test_neighbours_of_a_poison_run_are_never_failed_for_it(store: Store) -> None:
    """All runs share the worker that dies, again and again; none of them ran alone."""
    runs = [await store.enqueue() for _ in range(5)]
    await (await store.hand()).claim(5)
    for _ in range(6):
        await store.expire(*runs)
        await store.make_due()
        hand = await store.hand()
        await hand.reclaim()
        await hand.reclaims.promote()
        await hand.claim(5)
    states = {(await store.row(run_id))["status"] for run_id in runs}
    assert states == {"pending"}
    assert {(await store.row(run_id))["suspect"] for run_id in runs} == {True}


async def test_a_recorded_step_clears_a_suspect(store: Store) -> None:
    held = await crash_again(store, await crashed(store))
    assert held is not None
    await held.record()
    again = await crash_again(store, held)
    assert again is not None, "the first crash since a recorded step"
    assert (await store.row(held.run_id))["crashes"] == 1


@pytest.fixture
async def impatient(settings: Settings):
    strict = settings.model_copy(update={"progress_timeout": 5.0, "max_takeaways": 3})
    async with Database(strict, application="test").opened() as database:
        store = Store(database, settings.database_url)
        yield store
        await store.close()


async def stuck(store: Store, run_id: str) -> None:
    await store.rows(
        "UPDATE runs SET progress_at = clock_timestamp() - interval '6 s' WHERE run_id = %s", run_id
    )


async def test_a_run_without_progress_is_taken_away_from_a_worker_that_beats(
    impatient: Store,
) -> None:
    await impatient.enqueue()
    owner = await impatient.hand()
    held = await owner.claim_one()
    await stuck(impatient, held.run_id)
    await owner.heartbeat(held)
    [orphan] = await (await impatient.hand()).reclaim()
    assert (orphan.reason, orphan.became) == ("stuck", "running")
    assert [row["run_id"] for row in await owner.heartbeat(held)] == [None]
    row = await impatient.row(held.run_id)
    assert (row["takeaways"], row["crashes"]) == (1, 0)


async def test_a_run_that_never_makes_progress_fails(impatient: Store) -> None:
    run_id = await impatient.enqueue()
    await (await impatient.hand()).claim_one()
    for _ in range(3):
        await stuck(impatient, run_id)
        await (await impatient.hand()).reclaim()
    row = await impatient.row(run_id)
    assert (row["status"], row["failure"]) == (
        "failed", "Stuck: taken away 3 times for lack of progress",
    )  # fmt: skip


async def test_waiting_for_a_slot_is_progress(impatient: Store) -> None:
    from hand_rolled.entries import Place
    from two_workers import Limits

    await impatient.engine.set_limits(Limits(pools={"model": 0}))
    await impatient.enqueue()
    held = await (await impatient.hand()).claim_one()
    await stuck(impatient, held.run_id)
    assert not await held.slots.try_take(Place(0, 0), "model")
    assert await (await impatient.hand()).reclaim() == []


async def test_due_runs_come_back_to_the_head_of_their_priority(store: Store) -> None:
    begun = await store.enqueue()
    hand = await store.hand()
    await (await hand.claim_one()).ending.leave("scheduled", wait=3600)
    fresh = await store.enqueue()
    assert await hand.reclaims.promote() == 0
    assert (await hand.reclaims.next_due() or 0) > 3000
    await store.make_due()
    assert await hand.reclaims.promote() == 1
    assert [(await hand.claim_one()).run_id for _ in range(2)] == [begun, fresh]
