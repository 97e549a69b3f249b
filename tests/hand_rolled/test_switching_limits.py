"""Limits that are switched on or off while workers claim and register: nobody is missed.

A claim that counts nothing looks at its worker's row only. So each test here holds one side in the
middle of its transaction and lets the other side come.
"""

from __future__ import annotations

import asyncio
import random
from datetime import timedelta

from hand_rolled.claim import CLAIM
from hand_rolled.limits import LOCK_LIMITS, TELL_WORKERS
from hand_rolled.operations import reconcile
from hand_rolled.worker import REGISTER
from tests.hand_rolled.bench import KIND, Hand, Store
from two_workers import Limits

ONE = Limits(max_active=1)
UNCOUNTED = "SELECT count(*) FROM runs WHERE status = 'running' AND NOT holds_slot"


def a_claim(hand: Hand) -> dict[str, object]:
    return {
        "worker": hand.owner, "kind": KIND, "code": "1", "suspect": False, "want": 1,
        "ttl": timedelta(seconds=60),
    }  # fmt: skip


def a_registration(owner: str) -> dict[str, object]:
    return {
        "owner": owner, "process": owner, "host": "here", "pid": 1, "kinds": [KIND],
        "versions": ["1"], "concurrency": 10,
    }  # fmt: skip


async def test_limits_wait_for_a_claim_in_flight_and_count_it(store: Store) -> None:
    for _ in range(2):
        await store.enqueue()
    hand = await store.hand()
    async with await store.connect() as other, other.transaction():
        claimed = await (await other.execute(CLAIM, a_claim(hand))).fetchall()
        switching = asyncio.create_task(store.engine.set_limits(ONE))
        await store.until_blocked()
        assert not switching.done()
    await switching
    assert len(claimed) == 1
    assert await store.value("SELECT active FROM active_total") == 1
    assert await hand.claim() == []
    assert await reconcile(store.database) == []


async def test_a_claim_that_comes_meanwhile_waits_and_is_counted(store: Store) -> None:
    for _ in range(3):
        await store.enqueue()
    busy, hand = await store.hand(), await store.hand()
    running = await busy.claim_one()
    lock = "SELECT FROM runs WHERE run_id = %s FOR UPDATE"
    async with store.holding(lock, running.run_id):  # the switch waits here, to count it
        switching = asyncio.create_task(store.engine.set_limits(Limits(max_active=2)))
        await store.until_blocked()
        claiming = asyncio.create_task(hand.claim(2))
        await store.until_blocked(2)
    await switching
    assert len(await claiming) == 1
    assert await store.value("SELECT active FROM active_total") == 2
    assert await store.value(UNCOUNTED) == 0


async def test_a_worker_that_registers_meanwhile_waits_and_is_told(store: Store) -> None:
    for _ in range(3):
        await store.enqueue()
    running = await (await store.hand()).claim_one()
    lock = "SELECT FROM runs WHERE run_id = %s FOR UPDATE"
    async with store.holding(lock, running.run_id):
        switching = asyncio.create_task(store.engine.set_limits(Limits(max_active=2)))
        await store.until_blocked()
        registering = asyncio.create_task(store.hand())
        await store.until_blocked(2)
    await switching
    assert len(await (await registering).claim(2)) == 1
    assert await store.value(UNCOUNTED) == 0


async def test_limits_wait_for_a_registration_in_flight_and_tell_it(store: Store) -> None:
    for _ in range(2):
        await store.enqueue()
    async with await store.connect() as other, other.transaction():
        await other.execute(REGISTER, a_registration("newcomer"))
        switching = asyncio.create_task(store.engine.set_limits(ONE))
        await store.until_blocked()
    await switching
    assert len(await Hand(store, "newcomer").claim(2)) == 1
    assert await store.value(UNCOUNTED) == 0


async def test_a_claim_within_limits_locks_them_before_its_own_worker(store: Store) -> None:
    """As those do who change the limits: the other way round, the two would wait for each other."""
    await store.engine.set_limits(ONE)
    await store.enqueue()
    hand = await store.hand()
    assert len(await hand.claim()) == 1  # from now on it knows that it counts
    async with store.holding(LOCK_LIMITS) as other:
        claiming = asyncio.create_task(hand.claim())
        await store.until_blocked()
        told = await other.execute(TELL_WORKERS, {"counted": False})
        assert told.rowcount == 1
    assert await claiming == []


async def test_when_limits_are_switched_off_nobody_counts_any_more(store: Store) -> None:
    await store.engine.set_limits(ONE)
    for _ in range(3):
        await store.enqueue()
    early = await store.hand()
    assert len(await early.claim(3)) == 1
    await store.engine.set_limits(Limits())
    late = await store.hand()
    assert len(await early.claim(1)) == len(await late.claim(3)) == 1
    assert await store.value("SELECT bool_or(counted) FROM workers") is False


async def test_while_limits_are_set_no_run_is_uncounted(store: Store) -> None:
    """Six workers claim and finish, new ones register, and the limits come and go."""
    await store.rows(
        "INSERT INTO runs (run_id, kind, tenant, priority, payload) "
        "SELECT 'many-' || n, 'test', 'tenant-' || n %% 3, 3, 'null' "
        "FROM generate_series(1, %s) n",
        20_000,
    )
    over = False
    by: set[str] = set()

    async def worker(seed: int) -> None:
        dice = random.Random(seed)
        while not over:
            hand = await store.hand()
            for _ in range(dice.randint(1, 6)):
                for held in await hand.claim(dice.choice([1, 1, 3])):
                    by.add(held.lease.owner)
                    await held.ending.finish(result=None)

    async def switch() -> None:
        nonlocal over
        for round in range(25):
            await store.engine.set_limits(Limits(max_active=4, max_active_per_tenant=2))
            for _ in range(3):
                assert await store.value(UNCOUNTED) == 0, f"in round {round}"
            await store.engine.set_limits(Limits())
        over = True

    async with asyncio.timeout(90), asyncio.TaskGroup() as group:
        for seed in range(6):
            group.create_task(worker(seed))
        group.create_task(switch())
    assert len(by) > 6, "workers that registered meanwhile claimed too"
    assert await store.value("SELECT count(*) FROM runs WHERE status = 'pending'") > 0
    assert await store.value("SELECT count(*) FROM runs WHERE status = 'running'") == 0
    assert await reconcile(store.database) == []
