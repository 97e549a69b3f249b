"""Bugs that public queues and engines have had, each tried on this store.

Those that other tests of this folder show in full are named here, with where:

- river#1302, a sweep that acts on what it read earlier: `test_a_sweep_does_not_undo_a_finish`
- solid_queue#589, a live worker with a late heartbeat: `test_a_late_worker_finishes_or_fails_once`
- solid_queue PR#761, a zombie releases a semaphore twice: test_limits, `…only_its_own_slot`
- pgqueuer#761, two workers each see room for one: test_limits, `…more_runs_are_active_than_allowed`
- pgqueuer#475, #633, a dead worker's run blocks its own recovery: test_reclaim, `limits_do_not…`
- pgqueuer#430, #323, intervals that add up beyond the lease: `test_intervals_that_do_not_fit…`
- hatchet#322, a blocked event loop: test_workers, `…blocked_event_loop…`; its counter-test,
  jobpilot PR#29, beats while it is stuck: test_workers, `…makes_no_progress…`
- HealthClawGuardrails PR#411, a claim whose answer was lost: test_claim, `…delivered_again`
- dbos-py#804, oban#862, an owner id that is used twice: test_fence, `…used_again…`,
  and `test_a_worker_id_cannot_be_used_by_two_processes`
- dbos-py#742, recovery acts on an old list: `test_a_second_recovery_finds_nothing_to_do`
- dbos-py#716, the database restarts during recovery: test_connections, `…crashes_and_recovers…`
- dbos-py PR#703, a cancellation flips to success: test_lifecycle, `…cancellation_beats…`
- hatchet#4494, slots leak: test_limits, `every_way_out…`, and `test_a_full_fleet_is_never_wedged`
- hatchet PR#4784, a heartbeat is refused while its connection comes back: test_connections,
  `all_sessions_terminated…`
- aegra#502, an old attempt overwrites: test_fence; its review point, a renewal that outlasts the
  lease: `test_a_heartbeat_that_hangs_is_given_up_within_its_interval`
- absurd#16, #18, deadlocks between cancel, complete and fail: `test_all_at_once_never_deadlocks`
- procrastinate#1334, #1596, a half-open connection silences a worker: test_connections, `silent…`
- procrastinate#1074, prepared statements behind a pooler; river#205, startup parameters: see
  `test_nothing_that_a_pooler_refuses`
- MailFathom#1989, leases judged by replicas' clocks: test_claim, `a_wrong_clock…`
"""

from __future__ import annotations

import asyncio
import random
import time

import psycopg
import pytest

from hand_rolled.database import connect_arguments
from hand_rolled.entries import Place
from hand_rolled.heartbeat import Keeper
from hand_rolled.lease import Lease, LeaseLost, clock
from hand_rolled.reclaim import RECLAIM
from hand_rolled.settings import Settings, read_settings
from hand_rolled.waits import take_signal
from hand_rolled.worker import REGISTER, HandRolledWorker
from tests.hand_rolled.bench import Store
from tests.hand_rolled.process import app
from tests.hand_rolled.proxy import proxy_to
from two_workers import BadInput, Limits, RunClosed


async def test_a_sweep_does_not_undo_a_finish(store: Store) -> None:
    """river#1302: the sweep found the run expired; meanwhile its owner finished it."""
    await store.enqueue()
    held = await (await store.hand()).claim_one()
    await store.expire(held.run_id)
    sweeper = await store.hand()
    values = {
        "worker": sweeper.owner, "kinds": ["test"], "codes": ["1"], "free": 5, "known": [],
        "in_contact": True, "ttl": "60s", "progress_timeout": None, "max_takeaways": 5,
        "max_crashes": 3, "suspect_after": 2, "crash_backoff": "1s",
    }  # fmt: skip
    async with await store.connect() as connection:
        # REPEATABLE READ: the sweep's snapshot is older than the finish, as in the report.
        await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        await connection.execute("SELECT count(*) FROM runs")
        await held.ending.finish(result="done")
        with pytest.raises(Exception, match="concurrent update"):
            await connection.execute(
                RECLAIM.replace("%(crash_backoff)s", "%(crash_backoff)s::interval")
                .replace("%(ttl)s", "%(ttl)s::interval")
                .replace("SKIP LOCKED", ""),
                values,
            )
        await connection.execute("ROLLBACK")
    assert await sweeper.reclaim() == []
    assert (await store.row(held.run_id))["status"] == "succeeded"


async def test_a_late_worker_finishes_or_fails_once(store: Store) -> None:
    """solid_queue#589: the run was both finished and failed."""
    for _ in range(20):
        await store.enqueue()
        held = await (await store.hand()).claim_one()
        await store.expire(held.run_id)
        successor = await store.hand()

        async def late(held=held) -> bool:
            try:
                return await held.ending.finish(result="late") == "succeeded"
            except LeaseLost:
                return False

        finished, orphans = await asyncio.gather(late(), successor.reclaim())
        assert finished != bool(orphans), "exactly one of them has it"


async def test_intervals_that_do_not_fit_are_refused() -> None:
    """pgqueuer#430: heartbeat interval and flush delay added up beyond the timeout."""
    url = "postgresql://localhost/x"
    env = {"DATABASE_URL": url, "HAND_ROLLED_LEASE_TTL": "6"}
    assert read_settings(env | {"HAND_ROLLED_HEARTBEAT_INTERVAL": "2"}).lease_ttl == 6
    with pytest.raises(BadInput, match="at most a third"):
        read_settings(env | {"HAND_ROLLED_HEARTBEAT_INTERVAL": "2.1"})
    with pytest.raises(BadInput, match="leaves no time"):
        read_settings(env | {"HAND_ROLLED_LEASE_MARGIN": "3"})


async def test_a_worker_id_cannot_be_used_by_two_processes(store: Store) -> None:
    """dbos-py#804: a draining process claimed again what recovery had just put back."""
    hand = await store.hand("worker-7")
    assert await store.database.fetch(
        REGISTER, owner=hand.owner, process="worker-7", host="elsewhere", pid=2, kinds=["test"],
        versions=["1"], concurrency=1,
    ) == []  # fmt: skip
    worker = HandRolledWorker(store.database.settings, [app()], worker_id="worker-7")
    with pytest.raises(BadInput, match="taken by another process"):
        await worker.run(asyncio.Event())


async def test_a_second_recovery_finds_nothing_to_do(store: Store) -> None:
    """dbos-py#742: two recoveries of the same crash both ran the body."""
    await store.enqueue()
    held = await (await store.hand()).claim_one()
    await store.expire(held.run_id)
    first, second = await store.hand(), await store.hand()
    found = await asyncio.gather(first.reclaim(), second.reclaim())
    assert sorted(len(it) for it in found) == [0, 1]
    assert (await store.row(held.run_id))["lease_generation"] == 2


async def test_a_full_fleet_is_never_wedged(store: Store) -> None:
    """hatchet#4494: slots leaked until nothing ran any more."""
    await store.engine.set_limits(Limits(max_active=2, max_active_per_tenant=1))
    for _ in range(15):
        await store.enqueue(tenant="a")
        await store.enqueue(tenant="b")
    dice = random.Random(7)
    async with asyncio.timeout(90):
        while await store.value("SELECT count(*) FROM runs WHERE closed_at IS NULL"):
            hand = await store.hand()
            for held in await hand.claim(5):
                match dice.randrange(4):
                    case 0:
                        await store.expire(held.run_id)
                    case 1:
                        await held.ending.leave("scheduled", wait=0)
                    case _:
                        await held.ending.finish(result=1)
            for orphan in await hand.reclaim():
                if orphan.claimed is not None:
                    await hand.held(orphan.claimed).ending.finish(result=1)
            await hand.reclaims.promote()
    assert await store.value("SELECT active FROM active_total") == 0


class Deaf:
    """An owner that only remembers what it was told."""

    def __init__(self) -> None:
        self.lost: list[Lease] = []

    def lease_lost(self, lease: Lease) -> None:
        self.lost.append(lease)

    def requested(self, lease: Lease) -> None: ...
    def declared_dead(self) -> None: ...


async def test_a_heartbeat_that_hangs_is_given_up_within_its_interval(store: Store, server) -> None:
    """aegra PR#547: a renewal that outlasts the lease renews nothing."""
    await store.enqueue()
    held = await (await store.hand()).claim_one()
    async with proxy_to("127.0.0.1", server.port) as proxy:
        url = store.url.replace(f":{server.port}/", f":{proxy.port}/")
        settings = Settings(database_url=url, lease_ttl=30, heartbeat_interval=0.5)
        keeper = Keeper(settings, held.lease.owner, Deaf(), asyncio.get_running_loop())
        held.lease.trusted_until = clock() + 3600  # not what this is about
        keeper.hold(held.lease)
        keeper.start()
        try:
            await store.until(lambda: _renewed(held.lease))
            proxy.silence()
            await asyncio.sleep(2)  # several beats hang
            proxy.heal()
            healed = clock()
            before = held.lease.trusted_until
            await store.until(lambda: _renewed(held.lease, since=before))
            assert clock() - healed < 15, "half a lease: hanging beats did not pile up"
        finally:
            await keeper.stop()


async def _renewed(lease: Lease, *, since: float | None = None) -> bool:
    if since is not None:
        return lease.trusted_until > since
    return lease.trusted_until < clock() + 60


async def test_a_heartbeat_after_the_end_does_not_take_the_run_for_lost(store: Store) -> None:
    """The end is on disk, its answer is not read yet, and a heartbeat finds the run gone."""
    await store.enqueue()
    held = await (await store.hand()).claim_one()
    deaf = Deaf()
    settings = Settings(
        database_url=store.url, lease_ttl=60, heartbeat_interval=0.2, stall_limit=50
    )
    keeper = Keeper(settings, held.lease.owner, deaf, asyncio.get_running_loop())
    keeper.hold(held.lease)
    keeper.start()
    try:
        with psycopg.connect(store.url) as lock, psycopg.connect(store.url, autocommit=True) as eye:
            lock.execute("SELECT FROM runs WHERE run_id = %s FOR UPDATE", [held.run_id])
            ending = asyncio.create_task(held.ending.finish(result=1))
            await store.until_blocked(2)
            # From here this loop reads nothing; the keeper's thread has a loop of its own.
            lock.commit()
            _until(eye, "SELECT status = 'succeeded' FROM runs WHERE run_id = %s", held.run_id)
            eye.execute("UPDATE workers SET heartbeat_at = '-infinity'")
            _until(eye, "SELECT heartbeat_at > '-infinity' FROM workers")
            assert not ending.done()
        assert await ending == "succeeded"
    finally:
        await keeper.stop()
    assert (deaf.lost, held.lease.lost) == ([], None)


def _until(eye: psycopg.Connection, question: str, *values: str) -> None:
    deadline = time.monotonic() + 30
    while not eye.execute(question, values or None).fetchone()[0]:
        assert time.monotonic() < deadline, question
        time.sleep(0.01)


async def test_all_at_once_never_deadlocks(store: Store) -> None:
    """absurd#16: cancel, complete and fail took their locks in different orders."""
    await store.engine.set_limits(Limits(max_active=50, max_active_per_tenant=30))
    before = await _deadlocks(store)
    dice = random.Random(3)
    runs: list[str] = []
    ends = time.monotonic() + 8

    async def client() -> None:
        while time.monotonic() < ends:
            runs.append(await store.enqueue(tenant=dice.choice("abc")))
            try:
                await store.engine.cancel(dice.choice(runs))
                await store.engine.signal(dice.choice(runs), "go", 1, signal_id=str(len(runs)))
            except RunClosed:
                continue

    async def worker() -> None:
        hand = await store.hand()
        while time.monotonic() < ends:
            for held in await hand.claim(4):
                try:
                    await hand.heartbeat(held)
                    await held.record()
                    await take_signal(held.journal, Place(1, 0), "go", "wait:1")
                    if dice.random() < 0.3:
                        await store.expire(held.run_id)
                    elif dice.random() < 0.5:
                        await held.ending.finish(failure="x")
                    else:
                        await held.ending.finish(result=1)
                except LeaseLost:
                    continue
            for orphan in await hand.reclaim(3):
                if orphan.claimed is not None:
                    await hand.held(orphan.claimed).ending.finish(result=1)

    await asyncio.gather(*(client() for _ in range(3)), *(worker() for _ in range(6)))
    assert len(runs) > 20
    assert await _deadlocks(store) == before


async def _deadlocks(store: Store) -> int:
    await store.rows("SELECT pg_stat_force_next_flush()")
    return await store.value(
        "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    )


async def test_nothing_that_a_pooler_refuses(settings: Settings) -> None:
    """procrastinate#1074, river#205: prepared statements, and timeouts as startup parameters."""
    arguments = connect_arguments(settings, application="x")
    assert "options" not in arguments
    assert arguments["prepare_threshold"] is None
