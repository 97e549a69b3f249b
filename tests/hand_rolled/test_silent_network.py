"""A network that answers late or not at all: trust ends in time, and nothing is done twice."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator
from datetime import datetime

import pytest
from psycopg import OperationalError

from hand_rolled.database import Database
from hand_rolled.entries import Place
from hand_rolled.lease import LeaseLost, clock
from hand_rolled.plugin import PLUGIN
from hand_rolled.server import EmbeddedPostgres
from hand_rolled.settings import Settings
from tests.hand_rolled.bench import Store, entry
from tests.hand_rolled.fleet import Fleet
from tests.hand_rolled.process import Work
from tests.hand_rolled.proxy import Proxy, proxy_to
from two_workers import EngineUnavailable, RunState


@pytest.fixture
async def proxy(server: EmbeddedPostgres) -> AsyncIterator[Proxy]:
    async with proxy_to("127.0.0.1", server.port) as found:
        yield found


def through(url: str, server: EmbeddedPostgres, proxy: Proxy) -> str:
    return url.replace(f":{server.port}/", f":{proxy.port}/")


async def test_a_silent_network_ends_trust_before_the_lease_ends(
    fleet: Fleet, server: EmbeddedPostgres, proxy: Proxy
) -> None:
    """Who is cut off begins nothing more before its successor does; after that, both work."""
    fleet.env["DATABASE_URL"] = through(fleet.store.url, server, proxy)
    cut_off = fleet.start()
    fleet.env["DATABASE_URL"] = fleet.store.url
    run_id = await fleet.run(*[Work(name=str(n), seconds=1) for n in range(12)])
    await fleet.until_event(run_id)
    fleet.start()
    proxy.silence()
    taken = await fleet.until_event(run_id, beside=cut_off)
    await fleet.until_state(run_id, RunState.SUCCEEDED)
    late = [
        it for it in fleet.events(run_id, event="begin")
        if it["worker"] == cut_off and it["at"] > taken["at"]
    ]  # fmt: skip
    assert late == []
    assert f"lost {run_id}" in fleet.log(cut_off)
    proxy.heal()
    again = await fleet.run(*[Work(name=str(n), seconds=0.2) for n in range(3)])
    await fleet.until_state(again, RunState.SUCCEEDED)


@pytest.mark.parametrize("fast", [False, True], ids=["as read", "fast"])
async def test_what_was_given_up_is_not_taken_up_again_under_the_same_fence(
    fleet: Fleet, server: EmbeddedPostgres, proxy: Proxy, fast: bool
) -> None:
    """Alone and cut off until its trust ends, a worker gets its runs back with a new generation."""
    fleet.env["DATABASE_URL"] = through(fleet.store.url, server, proxy)
    worker = fleet.start(fast=fast, query_timeout=1)
    run_id = await fleet.run(*[Work(name=str(n), seconds=0.3) for n in range(15)])
    recorded = "SELECT count(*) FROM journal"
    await fleet.store.until(lambda: _is_at_least(fleet, recorded, 3))
    proxy.silence()
    async with asyncio.timeout(60):
        while f"lost {run_id}" not in fleet.log(worker):
            proxy.reset()  # so that the worker is back at once, before its lease has ended
            await asyncio.sleep(0.05)
    proxy.heal()
    await fleet.until_state(run_id, RunState.SUCCEEDED)
    begun = Counter((it["key"], it["fence"]) for it in fleet.events(run_id, event="begin"))
    assert [it for it, times in begun.items() if times > 1] == []
    first = await fleet.store.rows("SELECT batch FROM journal WHERE lease_generation = 1")
    again = {key for key, fence in begun if fence > 1}
    assert not again & {f"{run_id}/{row['batch']}.0" for row in first}
    assert again


async def _is_at_least(fleet: Fleet, count: str, least: int) -> bool:
    return await fleet.store.value(count) >= least


async def test_answers_that_are_swallowed_after_the_commit_do_no_harm(
    fleet: Fleet, server: EmbeddedPostgres, proxy: Proxy
) -> None:
    """Cut after COMMIT, before the reply: claims, records and finishes are sent again."""
    fleet.env["DATABASE_URL"] = through(fleet.store.url, server, proxy)
    fleet.start(lease_ttl=60, heartbeat_interval=1, query_timeout=0.5)
    steps = [Work(name=str(n), seconds=0.1) for n in range(6)]
    runs = [await fleet.run(*steps) for _ in range(4)]
    await fleet.until_event(runs[0])
    for _ in range(5):
        proxy.swallow_answers()
        await asyncio.sleep(0.2)
        proxy.reset()
        proxy.heal()
        await asyncio.sleep(0.3)
    for run_id in runs:
        await fleet.until_state(run_id, RunState.SUCCEEDED)
        assert len(fleet.events(run_id, event="begin")) == 6, "no step was done twice"
        assert (
            await fleet.store.value("SELECT lease_generation FROM runs WHERE run_id = %s", run_id)
            == 1
        )


async def test_a_write_is_given_up_when_trust_ends_not_later(
    url: str, server: EmbeddedPostgres, proxy: Proxy
) -> None:
    settings = Settings(
        database_url=through(url, server, proxy), query_timeout=0.3, notify=False,
        lease_ttl=60, heartbeat_interval=1,
    )  # fmt: skip
    async with Database(settings, application="test").opened() as database:
        store = Store(database, url)
        await store.enqueue()
        held = await (await store.hand()).claim_one()
        held.lease.trusted_until = clock() + 2
        proxy.silence()
        with pytest.raises(LeaseLost, match="no answer from the database"):
            await held.journal.record(Place(0, 0), entry())
        proxy.heal()
        await store.close()


async def test_a_client_whose_database_went_away_says_so_and_does_not_hang(
    url: str, server: EmbeddedPostgres, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hand_rolled.database.PATIENCE", 2.0)
    settings = Settings(database_url=through(url, server, proxy), query_timeout=0.5)
    async with PLUGIN.connect(settings) as engine:
        proxy.silence()
        async with asyncio.timeout(30):
            with pytest.raises(EngineUnavailable, match="cannot be used"):
                await engine.get("x")
        proxy.heal()


async def test_a_beat_that_failed_is_not_repeated_a_whole_interval_later(
    fleet: Fleet, server: EmbeddedPostgres, proxy: Proxy
) -> None:
    """Or else every restart of the server would use up another part of each lease."""
    interval = 4.0
    fleet.env["DATABASE_URL"] = through(fleet.store.url, server, proxy)
    worker = fleet.start(lease_ttl=60, heartbeat_interval=interval)
    await fleet.until_ready(worker)
    beats = [await _beat_after(fleet, worker, None)]
    beats.append(await _beat_after(fleet, worker, beats[-1]))
    proxy.reset()  # the next beat finds its connection broken
    beats.append(await _beat_after(fleet, worker, beats[-1]))
    assert (beats[2] - beats[1]).total_seconds() < 1.75 * interval
    assert fleet.log(worker).count("heartbeat failed") == 1


async def _beat_after(fleet: Fleet, worker: str, last: datetime | None) -> datetime:
    seen: list[datetime] = []

    async def is_later() -> bool:
        beat = await fleet.store.value(
            "SELECT heartbeat_at FROM workers WHERE process = %s", worker
        )
        seen.append(beat)
        return last is None or beat > last

    await fleet.store.until(is_later)
    return seen[-1]


async def test_who_is_cancelled_does_not_wait_for_a_silent_database(
    url: str, server: EmbeddedPostgres, proxy: Proxy
) -> None:
    """Not even as long as the driver would: it gives a server ten seconds."""
    settings = Settings(database_url=through(url, server, proxy), notify=False)
    async with Database(settings, application="test").opened() as database:
        await database.fetch("SELECT 1")
        proxy.silence()
        asked = asyncio.create_task(database.fetch("SELECT 1"))
        await asyncio.sleep(0)  # so that it begins
        asked.cancel()
        await asyncio.wait([asked], timeout=4)
        assert asked.cancelled()
        proxy.heal()
        assert await database.fetch("SELECT 1 AS one") == [{"one": 1}]


async def test_a_statement_that_nobody_waits_for_is_ended_on_the_server(store: Store) -> None:
    """Or else it would wait for its lock, and then do what nobody wants any more."""
    await store.rows("CREATE TABLE wanted (id int)")
    async with await store.connect() as rival, rival.transaction():
        await rival.execute("LOCK TABLE wanted")
        asked = asyncio.create_task(store.database.fetch("INSERT INTO wanted VALUES (1)"))
        await store.until_blocked()
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
    assert await store.value("SELECT count(*) FROM wanted") == 0


async def test_a_server_that_went_away_is_asked_again_before_a_lease_ends(
    url: str, server: EmbeddedPostgres, caplog: pytest.LogCaptureFixture
) -> None:
    """The pool by itself would ask after one second, and then after two more."""
    caplog.set_level(logging.WARNING, logger="psycopg.pool")
    async with proxy_to("127.0.0.1", server.port) as proxy:
        settings = Settings(database_url=through(url, server, proxy), notify=False, pool_size=1)
        database = Database(settings, application="test")
        opened = database.opened()
        await opened.__aenter__()
    try:
        with pytest.raises(OperationalError):
            await database.fetch("SELECT 1")
        async with asyncio.timeout(60):
            while len(tries := _refused(caplog)) < 5:
                await asyncio.sleep(0.05)
        assert tries[4] - tries[0] < 3
    finally:
        await opened.__aexit__(None, None, None)


def _refused(caplog: pytest.LogCaptureFixture) -> list[float]:
    """When the pool tried to connect, and could not."""
    return [it.created for it in caplog.records if "error connecting" in it.getMessage()]
