"""Group commit itself: one commit, three outcomes per run, and no act ahead of the disk."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from hand_rolled.entries import Place
from hand_rolled.fast.commit import GroupCommit
from hand_rolled.fast.journal import FastEffects, FastHandler, FastJournal
from hand_rolled.handler import Finished
from hand_rolled.lease import LeaseLost
from hand_rolled.lifecycle import Ending
from hand_rolled.limits import Slots
from tests.hand_rolled.bench import KIND, Hand, Held, Store, entry
from two_workers import App, Call, Effect, Limits, Step, do

FIRST = Place(0, 0)


class Ask(Step[str]):
    text: str


@pytest.fixture
async def hand(store: Store) -> Hand:
    return await store.hand()


@pytest.fixture
def group(store: Store, hand: Hand) -> GroupCommit:
    return GroupCommit(store.database, owner=hand.owner, process="p")


def joined(held: Held, store: Store, group: GroupCommit) -> FastJournal:
    """The run's journal, writing with others."""
    return FastJournal(store.database, held.lease, "p", group=group)


def soon(journal: FastJournal, place: Place = FIRST, **more: object) -> None:
    journal.record_soon(place, entry(**more))


async def claimed(store: Store, hand: Hand, group: GroupCommit, count: int) -> list[FastJournal]:
    for _ in range(count):
        await store.enqueue()
    return [joined(held, store, group) for held in await hand.claim(count)]


async def test_the_writes_of_many_runs_are_one_commit(
    store: Store, hand: Hand, group: GroupCommit
) -> None:
    journals = await claimed(store, hand, group, 20)
    for journal in journals:
        soon(journal)
    await group.flush()
    await asyncio.gather(*(journal.settled() for journal in journals))
    assert await store.value("SELECT count(*) FROM journal") == 20
    assert await store.value("SELECT count(DISTINCT xmin::text) FROM journal") == 1


async def test_a_record_and_the_end_after_it_are_one_commit(
    store: Store, hand: Hand, group: GroupCommit
) -> None:
    [journal] = await claimed(store, hand, group, 1)
    soon(journal)
    ending = asyncio.create_task(Ending(journal).finish(result="done"))
    await asyncio.sleep(0)
    await group.flush()
    assert await ending == "succeeded"
    row = await store.row(journal.lease.run_id)
    assert (row["status"], row["result"], row["lease_owner"]) == ("succeeded", "done", None)
    assert await store.value("SELECT count(DISTINCT xmin::text) FROM journal") == 1
    assert await store.value(
        "SELECT r.xmin::text = j.xmin::text FROM runs r JOIN journal j USING (run_id)"
    )


async def test_one_run_that_was_taken_over_costs_the_others_nothing(
    store: Store, hand: Hand, group: GroupCommit
) -> None:
    journals = await claimed(store, hand, group, 3)
    lost = journals[1].lease.run_id
    await store.expire(lost)
    await (await store.hand()).take_over()
    for journal in journals:
        soon(journal)
    await group.flush()
    await asyncio.gather(journals[0].settled(), journals[2].settled())
    with pytest.raises(LeaseLost):
        await journals[1].settled()
    assert await store.value("SELECT count(*) FROM journal WHERE run_id = %s", lost) == 0


async def test_a_takeover_between_the_look_and_the_lock_is_seen(
    store: Store, hand: Hand, group: GroupCommit
) -> None:
    journals = await claimed(store, hand, group, 2)
    raced = journals[0].lease.run_id
    for journal in journals:
        soon(journal)
    async with store.holding(
        "UPDATE runs SET lease_generation = lease_generation + 1 WHERE run_id = %s", raced
    ):
        flushing = asyncio.create_task(group.flush())
        await store.until_blocked()
    await flushing
    await journals[1].settled()
    with pytest.raises(LeaseLost):
        await journals[0].settled()
    assert await store.value("SELECT count(*) FROM journal WHERE run_id = %s", raced) == 0


async def test_a_worker_that_took_its_own_run_over_writes_under_the_right_generation(
    store: Store, hand: Hand, group: GroupCommit
) -> None:
    [old] = await claimed(store, hand, group, 1)
    await store.expire(old.lease.run_id)
    new = joined(await hand.take_over(), store, group)
    soon(old, value="stale")
    soon(new, value="fresh")
    await group.flush()
    await new.settled()
    with pytest.raises(LeaseLost):
        await old.settled()
    assert await store.value("SELECT outcome->>'value' FROM journal") == "fresh"


async def test_a_repeated_record_is_already_ours_and_another_one_is_refused(
    store: Store, hand: Hand, group: GroupCommit
) -> None:
    [journal] = await claimed(store, hand, group, 1)
    for fingerprint, refused in ("ask:1", False), ("ask:1", False), ("ask:2", True):
        soon(journal, fingerprint=fingerprint)
        await group.flush()
        if refused:
            with pytest.raises(LeaseLost):
                await journal.settled()
        else:
            await journal.settled()
    assert await store.value("SELECT count(*) FROM journal") == 1


async def test_one_bad_row_fails_alone(store: Store, hand: Hand, group: GroupCommit) -> None:
    journals = await claimed(store, hand, group, 9)
    for number, journal in enumerate(journals):
        # A NUL in an identifier of the step: no text column takes it.
        soon(journal, fingerprint="ask:\x00" if number == 4 else "ask:1")
    await group.flush()
    with pytest.raises(psycopg.DataError):
        await journals[4].settled()
    await asyncio.gather(*(it.settled() for n, it in enumerate(journals) if n != 4))
    assert await store.value("SELECT count(*) FROM journal") == 8


async def test_a_requested_cancellation_beats_the_end_in_a_flush(
    store: Store, hand: Hand, group: GroupCommit
) -> None:
    [journal] = await claimed(store, hand, group, 1)
    await store.engine.cancel(journal.lease.run_id)
    ending = asyncio.create_task(Ending(journal).finish(result="done"))
    await asyncio.sleep(0)
    await group.flush()
    assert await ending == "cancelled"


async def test_workers_that_end_runs_of_the_same_tenants_never_deadlock(store: Store) -> None:
    tenants = [f"tenant-{n}" for n in range(4)]
    await store.engine.set_limits(Limits(max_active=1000, max_active_per_tenant=1000))
    for n in range(120):
        await store.enqueue(tenant=tenants[n % 4])

    async def work(hand: Hand) -> None:
        group = GroupCommit(store.database, owner=hand.owner, process="p")
        while held := await hand.claim(5):
            endings = [
                asyncio.create_task(Ending(joined(it, store, group)).finish(result=1))
                for it in held
            ]
            await asyncio.sleep(0)
            await group.flush()
            await asyncio.gather(*endings)

    hands = [await store.hand() for _ in range(4)]
    await asyncio.gather(*(work(hand) for hand in hands))
    assert await store.value("SELECT count(*) FROM runs WHERE status = 'succeeded'") == 120
    assert await store.value("SELECT sum(active) FROM tenants") == 0
    assert await store.value("SELECT active FROM active_total") == 0
    await store.rows("SELECT pg_stat_force_next_flush()")
    assert (
        await store.value(
            "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        )
        == 0
    )


async def test_the_agent_thinks_ahead_of_the_disk_but_does_not_act(
    store: Store, hand: Hand, group: GroupCommit
) -> None:
    performed: list[str] = []
    thought: list[str] = []

    async def agent(payload: dict[str, str]) -> str:
        await do(Ask(text="one"))
        thought.append("two")
        return await do(Ask(text="two"))

    async def perform(step: Ask, call: Call) -> str:
        performed.append(step.text)
        return step.text

    [journal] = await claimed(store, hand, group, 1)
    app = App(kind=KIND, agent=agent, effects={Ask: Effect(perform)})
    effects = FastEffects(
        app=app, journal=journal, slots=Slots(journal, None), resources=None, process="p", jitter=0
    )
    flushing = asyncio.create_task(group.run())
    async with store.holding("SELECT FROM runs WHERE run_id = %s FOR UPDATE", journal.lease.run_id):
        driving = asyncio.create_task(FastHandler(app, journal, effects).drive({}))
        await store.until_blocked()
        assert (performed, thought) == (["one"], ["two"])
    assert await driving == Finished("two")
    assert performed == ["one", "two"]
    flushing.cancel()
    await asyncio.gather(flushing, return_exceptions=True)


async def test_starts_that_meet_share_a_commit_and_stay_idempotent(store: Store) -> None:
    ids = await asyncio.gather(*(store.enqueue(f"run-{n % 10}") for n in range(30)))
    assert set(ids) == {f"run-{n}" for n in range(10)}
    assert await store.value("SELECT count(*) FROM runs") == 10
    assert await store.value("SELECT count(DISTINCT xmin::text) FROM runs") < 10
