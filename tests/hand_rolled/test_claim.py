"""The claim: one owner, one generation, whatever the timing."""

from __future__ import annotations

import asyncio

from hand_rolled.claim import CLAIM
from tests.hand_rolled.bench import KIND, Store


async def test_two_workers_and_one_run_make_one_owner(store: Store) -> None:
    run_id = await store.enqueue()
    one, two = await store.hand(), await store.hand()
    claims = await asyncio.gather(one.claim(), two.claim())
    assert sorted(len(it) for it in claims) == [0, 1]
    row = await store.row(run_id)
    assert row["lease_generation"] == 1
    assert row["lease_owner"] in (one.owner, two.owner)


async def test_a_claim_steps_over_a_run_that_another_is_claiming(store: Store) -> None:
    first, second = await store.enqueue(), await store.enqueue()
    one = await store.hand()
    async with store.holding("SELECT FROM runs WHERE run_id = %s FOR NO KEY UPDATE", first):
        assert (await one.claim_one()).run_id == second
    assert (await one.claim_one()).run_id == first


async def test_a_claim_does_not_skip_a_run_that_somebody_refers_to(store: Store) -> None:
    run_id = await store.enqueue()
    await store.rows("CREATE TABLE events (run_id text REFERENCES runs)")
    hand = await store.hand()
    async with store.holding("INSERT INTO events VALUES (%s)", run_id):
        assert (await hand.claim_one()).run_id == run_id


async def test_a_batch_takes_what_it_asked_for_in_order_of_priority_and_age(store: Store) -> None:
    late = await store.enqueue(priority=5)
    normal = [await store.enqueue() for _ in range(3)]
    urgent = await store.enqueue(priority=1)
    hand = await store.hand()
    assert {it.run_id for it in await hand.claim(3)} == {urgent, *normal[:2]}
    assert {it.run_id for it in await hand.claim(9)} == {normal[2], late}


async def test_a_claim_never_takes_more_than_it_asked_for_whatever_the_plan(store: Store) -> None:
    """A nested loop over `run_id IN (SELECT … LIMIT 2 FOR UPDATE SKIP LOCKED)` would take all."""
    for _ in range(30):
        await store.enqueue()
    hand = await store.hand()
    claim = {
        "worker": hand.owner, "kind": KIND, "code": "1", "suspect": False, "want": 2, "ttl": "60s",
    }  # fmt: skip
    async with await store.connect() as connection:
        for other in ("hashjoin", "mergejoin", "material"):
            await connection.execute(f"SET enable_{other} = off")
        assert len(await (await connection.execute(CLAIM, claim)).fetchall()) == 2
    assert await store.value("SELECT count(*) FROM runs WHERE status = 'running'") == 2


async def test_each_claim_raises_the_generation_by_one_and_is_logged(store: Store) -> None:
    run_id = await store.enqueue()
    for generation in (1, 2, 3):
        hand = await store.hand()
        held = await hand.claim_one()
        assert held.lease.generation == generation
        await held.ending.leave("pending")
    events = await store.rows(
        "SELECT lease_generation, event FROM ownership WHERE run_id = %s ORDER BY version", run_id
    )
    assert [tuple(row.values()) for row in events] == [
        (1, "claimed"), (1, "left"), (2, "claimed"), (2, "left"), (3, "claimed"), (3, "left"),
    ]  # fmt: skip


async def test_a_worker_that_was_declared_dead_claims_nothing(store: Store) -> None:
    await store.enqueue()
    hand = await store.hand()
    await store.declare_dead(hand)
    assert await hand.claim() == []


async def test_a_claim_in_flight_waits_for_the_decision_whether_its_worker_is_dead(
    store: Store,
) -> None:
    run_id = await store.enqueue()
    hand = await store.hand()
    declare = "UPDATE workers SET dead_at = clock_timestamp() WHERE worker_id = %s"
    async with store.holding(declare, hand.owner):
        claim = asyncio.create_task(hand.claim())
        await store.until_blocked()
    assert await claim == []
    assert (await store.row(run_id))["status"] == "pending"


async def test_a_claim_whose_answer_was_lost_is_delivered_again(store: Store) -> None:
    run_id = await store.enqueue()
    hand = await store.hand()
    lost = await hand.claim_one()
    [again] = await hand.reclaims.redeliver(known=[])
    assert (again.run_id, again.generation) == (run_id, lost.lease.generation)
    assert await hand.reclaims.redeliver(known=[run_id]) == []


async def test_a_kind_that_nobody_serves_stays_pending_and_says_so(store: Store) -> None:
    run_id = await store.enqueue(kind="unheard-of")
    hand = await store.hand()
    assert await hand.claim() == []
    view = await store.engine.get(run_id)
    assert view.state == "pending"
    assert view.recovery == "no live worker serves kind 'unheard-of': it waits for one"


async def test_a_run_waits_for_the_code_version_that_began_it(store: Store) -> None:
    run_id = await store.enqueue()
    old, new = await store.hand(code="1"), await store.hand(code="2")
    await (await old.claim_one()).ending.leave("pending")
    assert await new.claim() == []
    assert (await old.claim_one()).run_id == run_id


async def test_a_run_whose_replay_did_not_match_is_left_to_other_workers(store: Store) -> None:
    run_id = await store.enqueue()
    unfit, fit = await store.hand(), await store.hand()
    await (await unfit.claim_one()).ending.leave("pending", mismatch="asked for something else")
    assert await unfit.claim() == []
    view = await store.engine.get(run_id)
    assert view.recovery is not None
    assert view.recovery.endswith("asked for something else")
    assert (await fit.claim_one()).run_id == run_id
    row = await store.row(run_id)
    assert (row["crashes"], row["failure"]) == (0, None)


async def test_a_wrong_clock_at_the_worker_changes_nothing(store: Store, monkeypatch) -> None:
    import time

    await store.enqueue()
    hand, other = await store.hand(), await store.hand()
    monkeypatch.setattr(time, "time", lambda: 0.0)
    held = await hand.claim_one()
    assert await other.reclaim() == []
    assert await store.value(
        "SELECT lease_expires_at > clock_timestamp() FROM runs WHERE run_id = %s", held.run_id
    )


async def test_a_busy_fleet_makes_room_for_a_suspect_that_waits_too_long(store: Store) -> None:
    run_id = await store.enqueue()
    await store.rows("UPDATE runs SET suspect = true")
    oldest, other = await store.hand(), await store.hand()

    async def asked() -> list[bool]:
        return [await hand.claims.must_make_room([KIND]) for hand in (oldest, other)]

    assert await asked() == [False, False], "it has not waited for long"
    await store.rows("UPDATE runs SET ready_at = clock_timestamp() - interval '1 h'")
    assert await asked() == [True, False]
    await store.rows(
        "UPDATE workers SET heartbeat_at = clock_timestamp() - interval '1 h' WHERE worker_id = %s",
        oldest.owner,
    )
    assert await asked() == [False, True], "the oldest does not answer"
    assert (await other.claim(suspect=True))[0].run_id == run_id
    assert await asked() == [False, False]
