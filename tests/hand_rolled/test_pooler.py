"""Behind a real pooler in transaction mode: nothing is lost, done twice, or wrongly taken over."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import psycopg
import pytest

from hand_rolled.migrate import migrate, scripts
from hand_rolled.notify import WORK
from hand_rolled.plugin import PLUGIN
from hand_rolled.server import EmbeddedPostgres
from hand_rolled.settings import Settings
from tests.hand_rolled.fleet import Fleet
from tests.hand_rolled.pooler import BACKENDS, PGBOUNCER, Pooler, pooler_to
from tests.hand_rolled.process import Script, Work
from two_workers import Run, RunState

pytestmark = pytest.mark.skipif(PGBOUNCER is None, reason="no pgbouncer: apt-get install pgbouncer")

CRASH = {"crash_detection": True, "lease_ttl": 60, "heartbeat_interval": 1}
OFF = "crash detection is off, the lease decides"


@pytest.fixture
def pooler(server: EmbeddedPostgres) -> Iterator[Pooler]:
    with pooler_to(server.url()) as found:
        yield found


@pytest.fixture
def pooled(fleet: Fleet, pooler: Pooler) -> str:
    """The address of the test's database through the pooler; workers use it from now on."""
    fleet.env["DATABASE_URL"] = pooler.url(fleet.store.url.rsplit("/", 1)[1])
    return fleet.env["DATABASE_URL"]


async def each_step_once(fleet: Fleet, runs: dict[str, list[str]]) -> None:
    """And nobody was taken over, nor declared dead."""
    begun = sorted(it["key"] for it in fleet.events(event="begin"))
    journal = await fleet.store.rows("SELECT run_id, batch, position FROM journal")
    recorded = sorted(f"{it['run_id']}/{it['batch']}.{it['position']}" for it in journal)
    assert len(begun) == len(set(begun)) == sum(map(len, runs.values()))
    assert recorded == begun
    events = {row["event"] for row in await fleet.store.rows("SELECT event FROM ownership")}
    assert not events & {"reclaimed", "reaped"}
    assert await fleet.store.value("SELECT count(*) FROM workers WHERE dead_at IS NOT NULL") == 0


async def test_migrations_pass_through_it(server: EmbeddedPostgres, pooler: Pooler) -> None:
    with psycopg.connect(server.url(), autocommit=True) as admin:
        admin.execute("CREATE DATABASE pooled_and_bare")
        try:
            through = Settings(database_url=pooler.url("pooled_and_bare"))
            assert await migrate(through) == list(scripts())
            assert await migrate(through) == []
        finally:
            admin.execute("DROP DATABASE pooled_and_bare WITH (FORCE)")


async def test_client_and_workers_lose_and_double_nothing(fleet: Fleet, pooled: str) -> None:
    workers = [fleet.start(), fleet.start(), fleet.start()]
    await fleet.until_ready(*workers)
    runs = {f"pooled-{n}": [f"{n}.{step}" for step in range(6)] for n in range(12)}
    async with PLUGIN.connect(Settings(database_url=pooled)) as engine:
        for run_id, names in runs.items():
            first, *pair, fourth, fifth, last = [Work(name=it, seconds=0.2) for it in names]
            script = Script(batches=[[first], pair, [fourth, fifth], [last]])
            await engine.start(Run(run_id=run_id, kind="test", payload=script.model_dump()))
        results = [await engine.result(run_id, timeout=90) for run_id in runs]
    assert results == list(runs.values())
    assert len({it["worker"] for it in fleet.events(event="begin")}) > 1
    await each_step_once(fleet, runs)
    backends = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
        "AND application_name LIKE 'two-workers%%' AND application_name <> %s"
    )
    assert 0 < await fleet.store.value(backends, "two-workers test") <= BACKENDS, "they shared"
    for worker in workers:
        assert "prepared statement" not in fleet.log(worker)


async def test_a_pooler_that_dies_makes_no_worker_dead(
    fleet: Fleet, pooled: str, pooler: Pooler
) -> None:
    """Not in the eyes of the other behind it, nor of one that connects directly and watches."""
    workers = [fleet.start(**CRASH), fleet.start(**CRASH)]
    await fleet.until_ready(*workers)
    names = [str(n) for n in range(12)]
    steps = [Work(name=name, seconds=0.5) for name in names]
    runs = {await fleet.run(*steps): names for _ in range(6)}
    for run_id in runs:
        await fleet.until_event(run_id)
    fleet.env["DATABASE_URL"] = fleet.store.url
    fleet.start(**CRASH)
    await fleet.until_locked(1)
    await asyncio.to_thread(pooler.kill)
    for worker in workers:
        await until_logged(fleet, worker, "heartbeat failed")
    await asyncio.sleep(1)  # longer than the grace: a wrong inference would be made now
    await asyncio.to_thread(pooler.start)
    for run_id, expected in runs.items():
        assert await fleet.store.engine.result(run_id, timeout=90) == expected
    await each_step_once(fleet, runs)
    for worker in workers:
        log = fleet.log(worker)
        assert log.count(OFF) == log.count(f"{OFF}: a pooler stands between us") == 1


async def until_logged(fleet: Fleet, worker: str, what: str) -> None:
    async with asyncio.timeout(60):
        while what not in fleet.log(worker):
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("notify", [True, False])
async def test_polling_finds_work_and_cancellations(
    fleet: Fleet, pooled: str, notify: bool
) -> None:
    worker = fleet.start(notify=notify)
    await fleet.until_ready(worker)
    run_id = await fleet.run(Work(name="long", seconds=120))
    await fleet.until_event(run_id)
    await fleet.store.engine.cancel(run_id)
    await fleet.until_event(run_id, "cancelled")
    await fleet.until_state(run_id, RunState.CANCELLED)


async def test_a_listener_behind_it_hears_nothing(fleet: Fleet, pooled: str) -> None:
    """Why the test before shows what polling does."""
    heard = {}
    for url in (fleet.store.url, pooled):
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as listener:
            await listener.execute(f"LISTEN {WORK}")
            await fleet.store.rows(f"NOTIFY {WORK}")
            heard[url] = [it async for it in listener.notifies(timeout=2, stop_after=1)]
    assert (len(heard[fleet.store.url]), heard[pooled]) == (1, [])
