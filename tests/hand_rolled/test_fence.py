"""The fence: no write of an older owner is accepted, of any kind; an owner's own retries are."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from hand_rolled.effects import Beat
from hand_rolled.entries import OpenStep, Place
from hand_rolled.journal import RECORD
from hand_rolled.lease import LeaseLost
from hand_rolled.progress import PROGRESS, _columns
from hand_rolled.waits import sleep, take_signal
from tests.hand_rolled.bench import Hand, Held, Store, entry
from two_workers import Limits

FIRST = Place(0, 0)


async def overtaken(store: Store) -> tuple[Held, Held]:
    """(zombie, successor): the zombie was paused past its lease, and wakes up now."""
    await store.engine.set_limits(Limits(pools={"model": 5}))
    run_id = await store.enqueue(budget=1000)
    await store.engine.signal(run_id, "go", 1, signal_id="1")
    zombie = await (await store.hand()).claim_one()
    await store.expire(zombie.run_id)
    successor = await (await store.hand()).take_over()
    return zombie, successor


async def snapshot(store: Store, run_id: str) -> list[object]:
    """Everything that a zombie could have changed."""
    return [
        await store.row(run_id),
        *[
            await store.rows(f"SELECT * FROM {table} WHERE run_id = %s ORDER BY 1, 2, 3", run_id)
            for table in (
                "journal",
                "open_steps",
                "signals",
                "pool_calls",
                "reservations",
                "ownership",
            )
        ],
        await store.rows("SELECT * FROM pools"),
    ]


WRITES: dict[str, Callable[[Held], Awaitable[object]]] = {
    "record": lambda held: held.record(),
    "record with sql": lambda held: held.record(statements=[("UPDATE runs SET cost = 99", {})]),
    "postpone": lambda held: held.journal.postpone(
        FIRST, OpenStep(failures=1), wait=1, error="x", charge=True
    ),
    "sleep": lambda held: sleep(held.journal, FIRST, 1),
    "take signal": lambda held: take_signal(held.journal, FIRST, "go", "wait_for_signal:1"),
    "take slot": lambda held: held.slots.try_take(FIRST, "model"),
    "reserve": lambda held: held.slots.try_reserve(FIRST, 1, 10),
    "finish": lambda held: held.ending.finish(result=1),
    "fail": lambda held: held.ending.finish(failure="x"),
    "release": lambda held: held.ending.leave("pending"),
    "retry": lambda held: held.ending.leave("scheduled", wait=1),
    "park": lambda held: held.ending.leave("waiting", signals_seen=1),
}


@pytest.mark.parametrize("write", WRITES)
async def test_a_zombie_cannot(store: Store, write: str) -> None:
    zombie, _ = await overtaken(store)
    before = await snapshot(store, zombie.run_id)
    with pytest.raises(LeaseLost):
        await WRITES[write](zombie)
    assert await snapshot(store, zombie.run_id) == before


@pytest.mark.parametrize("write", WRITES)
async def test_the_successor_can(store: Store, write: str) -> None:
    """The same writes, so that the refusals above prove something."""
    zombie, successor = await overtaken(store)
    before = await snapshot(store, zombie.run_id)
    await WRITES[write](successor)
    assert await snapshot(store, zombie.run_id) != before


async def test_a_zombie_cannot_renew_or_stamp_progress(store: Store) -> None:
    zombie, _ = await overtaken(store)
    before = await snapshot(store, zombie.run_id)
    hand = Hand(store, zombie.lease.owner)
    assert [row["run_id"] for row in await hand.heartbeat(zombie)] == [None]
    news = [(zombie.lease, FIRST, Beat({"page": 1}, 1))]
    await store.database.fetch(PROGRESS, **_columns(zombie.lease.owner, news))
    assert await snapshot(store, zombie.run_id) == before


async def test_the_same_generation_under_another_name_is_refused(store: Store) -> None:
    """After a failover that lost a commit, a generation can be given out twice."""
    _, successor = await overtaken(store)
    other = await store.hand()
    impostor = other.held(successor.claimed)
    for write in WRITES.values():
        with pytest.raises(LeaseLost):
            await write(impostor)


async def test_an_owner_name_that_is_used_again_does_not_keep_a_run_alive(store: Store) -> None:
    hand = await store.hand("worker-7")
    await store.enqueue()
    old = await hand.claim_one()
    await store.expire(old.run_id)
    new = await hand.take_over()
    assert new.lease.generation == old.lease.generation + 1
    assert [row["run_id"] for row in await hand.heartbeat(old)] == [None]
    with pytest.raises(LeaseLost):
        await old.record()


async def test_a_takeover_between_the_check_and_the_commit_is_impossible(store: Store) -> None:
    """The record holds the run's row: a reclaim steps over it until the record is committed."""
    await store.enqueue()
    held = await (await store.hand()).claim_one()
    await store.expire(held.run_id)
    successor = await store.hand()
    values = held.journal.values(FIRST) | {
        "kind": "ask", "fingerprint": "ask:1", "outcome": "1", "succeeded": True, "attempt": 1,
        "cost": 0, "process": "p",
    }  # fmt: skip
    async with await store.connect() as connection, connection.transaction():
        assert await (await connection.execute(RECORD, values)).fetchall()
        assert await successor.reclaim() == []
    assert (await successor.take_over()).lease.generation == 2


async def test_a_record_that_waited_for_a_takeover_is_refused(store: Store) -> None:
    await store.enqueue()
    held = await (await store.hand()).claim_one()
    takeover = (
        "UPDATE runs SET lease_generation = lease_generation + 1, lease_owner = 'next' "
        "WHERE run_id = %s"
    )
    async with store.holding(takeover, held.run_id):
        record = asyncio.create_task(held.record())
        await store.until_blocked()
    with pytest.raises(LeaseLost):
        await record
    assert await store.value("SELECT count(*) FROM journal") == 0


async def test_a_record_whose_answer_was_lost_is_success_when_sent_again(store: Store) -> None:
    run_id = await store.enqueue(budget=1000)
    held = await (await store.hand()).claim_one()
    await held.slots.try_reserve(FIRST, 1, 500)
    for _ in range(3):
        await held.record(cost=120)
    row = await store.row(run_id)
    assert (row["cost"], row["reserved"]) == (120, 0), "charged once"
    assert await store.value("SELECT count(*) FROM journal") == 1


async def test_a_record_that_overtakes_its_own_lost_try_is_recorded_once(store: Store) -> None:
    """The first try was given up for lost but is still running, and commits while we wait."""
    run_id = await store.enqueue()
    held = await (await store.hand()).claim_one()
    values = held.journal.values(FIRST) | {
        "kind": "ask", "fingerprint": "ask:1", "outcome": "1", "succeeded": True, "attempt": 1,
        "cost": 7, "process": "p",
    }  # fmt: skip
    async with await store.connect() as connection, connection.transaction():
        await connection.execute(RECORD, values)
        again = asyncio.create_task(held.record(cost=7))
        await store.until_blocked()
    await again
    assert (await store.row(run_id))["cost"] == 7
    assert await store.value("SELECT count(*) FROM journal") == 1


@pytest.mark.parametrize(
    "end",
    [
        lambda held: held.ending.finish(result=1),
        lambda held: held.ending.leave("pending"),
        lambda held: held.ending.leave("scheduled", wait=60),
    ],
)
async def test_an_ending_whose_answer_was_lost_is_success_when_sent_again(
    store: Store, end
) -> None:
    await store.enqueue()
    held = await (await store.hand()).claim_one()
    assert await end(held) == await end(held)
    row = await store.row(held.run_id)
    assert row["releases"] <= 1


async def test_a_reservation_or_slot_asked_for_twice_is_one(store: Store) -> None:
    await store.engine.set_limits(Limits(pools={"model": 5}))
    run_id = await store.enqueue(budget=1000)
    held = await (await store.hand()).claim_one()
    for _ in range(3):
        assert await held.slots.try_reserve(FIRST, 1, 300)
        assert await held.slots.try_take(FIRST, "model")
    assert (await store.row(run_id))["reserved"] == 300
    assert await store.value("SELECT calls FROM pools") == 1


async def test_text_that_a_database_refuses_survives_the_journal(store: Store) -> None:
    await store.enqueue()
    held = await (await store.hand()).claim_one()
    nasty = "nul \x00, lone surrogate \ud800, emoji \U0001f600"
    await held.journal.record(FIRST, entry(nasty))
    recorded, _ = await held.journal.load()
    assert recorded[FIRST].outcome == {"outcome": "succeeded", "value": nasty}
    await held.ending.finish(failure=nasty)
    assert "lone surrogate" in (await store.row(held.run_id))["failure"]


async def test_statements_of_an_effect_commit_with_its_record_or_not_at_all(store: Store) -> None:
    await store.rows("CREATE TABLE findings (text text PRIMARY KEY)")
    zombie, successor = await overtaken(store)
    insert = ("INSERT INTO findings VALUES (%(text)s)", {"text": "disk full"})
    with pytest.raises(LeaseLost):
        await zombie.journal.record(FIRST, entry(statements=[insert]))
    assert await store.value("SELECT count(*) FROM findings") == 0
    await successor.journal.record(FIRST, entry(statements=[insert]))
    assert await store.value("SELECT count(*) FROM findings") == 1
    with pytest.raises(Exception, match="duplicate key"):
        await successor.journal.record(Place(1, 0), entry(statements=[insert]))
    assert await store.value("SELECT count(*) FROM journal") == 1, "rolled back together"


async def test_the_history_of_ownership_cannot_be_rewritten(store: Store) -> None:
    await store.enqueue()
    await (await store.hand()).claim_one()
    with pytest.raises(Exception, match="append-only"):
        await store.rows("UPDATE ownership SET owner = 'me'")


async def test_every_write_raises_the_version(store: Store) -> None:
    _, successor = await overtaken(store)
    for name in ("record", "postpone", "sleep", "take slot", "reserve", "release"):
        before = (await store.row(successor.run_id))["version"]
        await WRITES[name](successor)
        assert (await store.row(successor.run_id))["version"] > before, name
