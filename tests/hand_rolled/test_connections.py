"""Connections that break: nothing is lost, nothing is done twice, nobody is wrongly taken over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest

from hand_rolled.crash import LOCK_CLASS, CrashWatch
from hand_rolled.database import Database
from hand_rolled.entries import Place
from hand_rolled.lease import Standing
from hand_rolled.migrate import migrate
from hand_rolled.plugin import PLUGIN
from hand_rolled.server import EmbeddedPostgres, embedded
from hand_rolled.settings import Settings
from tests.hand_rolled.bench import Store, entry
from tests.hand_rolled.fleet import Fleet
from tests.hand_rolled.process import Work, app
from two_workers import EngineUnavailable, RunState

CRASH = {"crash_detection": True, "lease_ttl": 60, "heartbeat_interval": 1}


async def no_takeover(fleet: Fleet) -> None:
    events = {row["event"] for row in await fleet.store.rows("SELECT event FROM ownership")}
    assert not events & {"reclaimed", "reaped"}
    assert await fleet.store.value("SELECT count(*) FROM workers WHERE dead_at IS NOT NULL") == 0


async def terminate(store: Store, application: str) -> int:
    return await store.value(
        "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity "
        "WHERE datname = current_database() AND application_name LIKE %s",
        application,
    )


async def test_a_terminated_lock_session_is_no_death(fleet: Fleet) -> None:
    workers = [fleet.start(**CRASH), fleet.start(**CRASH)]
    await fleet.until_locked(2)
    run_id = await fleet.run(*[Work(name=str(n), seconds=0.5) for n in range(8)])
    await fleet.until_event(run_id)
    for _ in range(3):
        assert await terminate(fleet.store, "%crash lock") == 2
        await fleet.until_locked(2)
        await asyncio.sleep(0.5)  # longer than the grace: a wrong inference would be made now
    await fleet.until_state(run_id, RunState.SUCCEEDED)
    await no_takeover(fleet)
    assert len(fleet.events(run_id, event="begin")) == 8
    assert all(fleet.processes[worker].poll() is None for worker in workers)


async def test_all_sessions_terminated_in_the_middle_of_work(fleet: Fleet) -> None:
    fleet.start(**CRASH)
    await fleet.until_locked(1)
    run_id = await fleet.run(*[Work(name=str(n), seconds=0.3) for n in range(10)])
    await fleet.until_event(run_id)
    for _ in range(4):
        await terminate(fleet.store, "two-workers%")
        await asyncio.sleep(0.4)
    await fleet.until_state(run_id, RunState.SUCCEEDED)
    await no_takeover(fleet)
    assert len(fleet.events(run_id, event="begin")) == 10, "each step was done once"


async def test_a_free_lock_that_was_never_seen_held_proves_nothing(fleet: Fleet) -> None:
    """A replacement that comes after the death waits for the lease."""
    victim = fleet.start(**CRASH)
    run_id = await fleet.run(Work(name="long", seconds=120))
    await fleet.until_event(run_id)
    fleet.kill(victim)
    replacement = fleet.start(**CRASH)
    await fleet.until_locked(1)
    await asyncio.sleep(1.5)
    assert [it["worker"] for it in fleet.events(run_id, event="begin")] == [victim]
    await fleet.store.expire(run_id)
    assert (await fleet.until_event(run_id, beside=victim))["worker"] == replacement


async def test_a_foreign_lock_switches_detection_off_and_says_so(fleet: Fleet) -> None:
    """What happens behind a pooler: the lock is somebody else's, and outlives its worker."""
    number = await fleet.store.value("SELECT coalesce(max(number), 0) + 1 FROM workers")
    async with await fleet.store.connect() as other:
        await other.execute("SELECT pg_advisory_lock(%s, %s)", (LOCK_CLASS, number))
        worker = fleet.start(**CRASH)
        run_id = await fleet.run(Work(name="one"))
        await fleet.until_state(run_id, RunState.SUCCEEDED)
    assert fleet.log(worker).count("crash detection is off, the lease decides") == 1


async def test_behind_a_pooler_detection_is_off_and_the_worker_trusted(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Behind one, the backend that answers is not the one that we connected to."""
    monkeypatch.setattr("hand_rolled.crash.BACKEND", "SELECT -1 AS pid")
    hand, standing = await store.hand(), Standing()
    watch = CrashWatch(store.database.settings, hand.owner, 1, standing, _never, _never)
    async with asyncio.timeout(30):
        await watch.run()
    assert standing.sure
    assert "a pooler stands between us and PostgreSQL" in caplog.text


def _never() -> None:
    raise AssertionError("nobody died")


@pytest.fixture
async def own_server(tmp_path: Path) -> AsyncIterator[EmbeddedPostgres]:
    """A server that may be restarted without disturbing other tests."""
    async with embedded(tmp_path / "own"):
        server = EmbeddedPostgres(tmp_path / "own" / "postgres")
        await migrate(Settings(database_url=server.url()))
        yield server


@pytest.mark.parametrize("crash_detection", [True, False])
async def test_a_server_that_crashes_and_recovers_costs_nobody_a_run(
    own_server: EmbeddedPostgres, tmp_path: Path, crash_detection: bool
) -> None:
    settings = Settings(database_url=own_server.url(), notify=False)
    async with Database(settings, application="test").opened() as database:
        store = Store(database, own_server.url())
        env = {"DATABASE_URL": own_server.url(), "HAND_ROLLED_POLL_INTERVAL": "0.1"}
        fleet = Fleet(store, tmp_path, env)
        try:
            long = {"lease_ttl": 60, "heartbeat_interval": 1, "crash_detection": crash_detection}
            fleet.start(**long)
            fleet.start(**long)
            runs = [
                await fleet.run(*[Work(name=str(n), seconds=0.5) for n in range(8)])
                for _ in range(4)
            ]
            for run_id in runs:
                await fleet.until_event(run_id)
            await asyncio.to_thread(own_server.restart, "immediate")
            await store.close()
            store._eye = None
            for run_id in runs:
                await fleet.until_state(run_id, RunState.SUCCEEDED)
                assert len(fleet.events(run_id, event="begin")) == 8
            await no_takeover(fleet)
        finally:
            fleet.close()
            await store.close()


async def test_a_deadlock_is_retried(store: Store) -> None:
    """The victim of 40P01 tries again by itself."""
    run_id = await store.enqueue()
    held = await (await store.hand()).claim_one()
    await store.rows("CREATE TABLE other (id int PRIMARY KEY, n int)")
    await store.rows("INSERT INTO other VALUES (1, 0)")
    statement = ("UPDATE other SET n = n + 1 WHERE id = 1", {})
    async with await store.connect() as rival:
        await rival.execute("SET deadlock_timeout = '10s'")  # so that ours is the victim
        async with rival.transaction():
            await rival.execute("UPDATE other SET n = n + 1 WHERE id = 1")
            record = asyncio.create_task(
                held.journal.record(Place(0, 0), entry(statements=[statement]))
            )
            await store.until_blocked()
            await rival.execute("UPDATE runs SET version = version WHERE run_id = %s", (run_id,))
    await record
    assert await store.value("SELECT n FROM other") == 2
    assert await store.value("SELECT count(*) FROM journal") == 1


async def test_no_transaction_is_open_while_an_effect_runs(fleet: Fleet) -> None:
    fleet.start(**CRASH)
    run_id = await fleet.run(Work(name="long", seconds=4))
    await fleet.until_event(run_id)
    for _ in range(20):
        open_for_long = await fleet.store.value(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid() AND clock_timestamp() - xact_start > interval '1 s'"
        )
        assert open_for_long == 0
        await asyncio.sleep(0.1)
    await fleet.until_state(run_id, RunState.SUCCEEDED)


async def test_every_session_is_bounded_in_time(store: Store) -> None:
    row = await store.database.fetch_one(
        "SELECT current_setting('statement_timeout') AS statement, "
        "current_setting('transaction_timeout') AS transaction, "
        "current_setting('idle_in_transaction_session_timeout') AS idle, "
        "current_setting('lock_timeout') AS lock"
    )
    assert row == {"statement": "5s", "transaction": "5s", "idle": "5s", "lock": "5s"}


async def test_nobody_at_the_address_is_one_clear_line() -> None:
    nobody = Settings(database_url="postgresql://me:secret@127.0.0.1:1/none", connect_timeout=2)
    for attempt in (PLUGIN.prepare(nobody), PLUGIN.connect(nobody).__aenter__()):
        with pytest.raises(EngineUnavailable) as found:
            await attempt
        assert "secret" not in str(found.value)
        assert "\n" not in str(found.value)
    worker = PLUGIN.worker(nobody, [app()], worker_id="w")
    with pytest.raises(EngineUnavailable):
        await worker.run(asyncio.Event())


async def test_a_database_that_was_not_migrated_says_what_to_do(server: EmbeddedPostgres) -> None:
    with psycopg.connect(server.url(), autocommit=True) as admin:
        admin.execute("CREATE DATABASE bare")
    try:
        with pytest.raises(EngineUnavailable, match="migrate"):
            async with PLUGIN.connect(Settings(database_url=server.url("bare"))) as engine:
                await engine.get("x")
    finally:
        with psycopg.connect(server.url(), autocommit=True) as admin:
            admin.execute("DROP DATABASE bare WITH (FORCE)")
