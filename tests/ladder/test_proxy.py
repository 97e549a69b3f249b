"""The proxy between real clients and real servers: each fault does what its name says."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from comparison.links import Trap
from comparison.proxy import Proxy
from hand_rolled.server import EmbeddedPostgres
from tests.ladder.proxied import Connection, being, count, gone, is_one, through, until

CUTS = set[asyncio.Task[None]]()


def cutting(proxy: Proxy, statement: str) -> Trap:
    """Cut the connection once the statement is committed, before its reply."""
    trap = proxy.trap(statement.encode(), "answered")

    async def cut() -> None:
        await trap.sprung.wait()
        trap.cut()

    CUTS.add(asyncio.create_task(cut()))
    return trap


async def test_a_healthy_proxy_changes_nothing(near: Connection, table: str) -> None:
    async with near.transaction():
        await near.execute(f"INSERT INTO {table} SELECT generate_series(1, 50000)")
    rows = await (await near.execute(f"SELECT n FROM {table} ORDER BY n")).fetchall()
    assert [n for [n] in rows] == list(range(1, 50001))


async def test_what_a_silent_partition_withheld_arrives_after_the_heal(
    proxy: Proxy, near: Connection, witness: Connection, table: str
) -> None:
    proxy.silence()
    asked = asyncio.create_task(near.execute(f"INSERT INTO {table} VALUES (1)"))
    await until(lambda: being(proxy.withheld["to_server"] > 0))
    assert await count(witness, table) == 0
    assert not asked.done()
    proxy.heal()
    await asked
    assert await count(witness, table) == 1


async def test_silent_to_the_client_only_the_server_still_does_the_work(
    proxy: Proxy, near: Connection, witness: Connection, table: str
) -> None:
    proxy.silence("to_client")
    asked = asyncio.create_task(near.execute(f"INSERT INTO {table} VALUES (1)"))
    await until(lambda: is_one(witness, table))
    await until(lambda: being(proxy.withheld["to_client"] > 0))
    assert proxy.withheld["to_server"] == 0
    assert not asked.done()
    proxy.heal()
    await asked


async def test_a_new_connection_during_a_silence_gets_no_answer(
    proxy: Proxy, postgres: EmbeddedPostgres
) -> None:
    proxy.silence()
    opening = asyncio.create_task(psycopg.AsyncConnection.connect(through(proxy, postgres)))
    await until(lambda: being(proxy.withheld["to_server"] > 0))
    assert not opening.done()
    proxy.heal()
    await (await opening).close()


async def test_a_reset_ends_every_connection_at_once(proxy: Proxy, near: Connection) -> None:
    assert proxy.reset() == 1
    with pytest.raises(psycopg.OperationalError):
        await near.execute("SELECT 1")
    await until(lambda: being(proxy.connections == 0))


async def test_half_closed_towards_the_server_its_session_ends(
    proxy: Proxy, near: Connection, witness: Connection
) -> None:
    pid = near.info.backend_pid
    assert proxy.half_close("to_server") == 1
    await until(lambda: gone(witness, pid))


async def test_a_delay_makes_every_exchange_later(proxy: Proxy, near: Connection) -> None:
    loop = asyncio.get_running_loop()
    proxy.delay = 0.3
    began = loop.time()
    await near.execute("SELECT 1")
    assert loop.time() - began >= 0.6, "once on the way there, once on the way back"


async def test_a_server_that_is_away_looks_like_one(postgres: EmbeddedPostgres) -> None:
    async with Proxy.before("127.0.0.1", 1) as proxy:
        with pytest.raises(psycopg.OperationalError):
            await psycopg.AsyncConnection.connect(through(proxy, postgres))


@pytest.mark.parametrize("prepared", [False, True])
async def test_cut_after_commit_the_row_is_there_and_the_client_does_not_know(
    proxy: Proxy, near: Connection, witness: Connection, table: str, prepared: bool
) -> None:
    insert = f"INSERT INTO {table} VALUES (%s)"
    await near.execute(insert, [0], prepare=prepared)
    cut = cutting(proxy, f"INTO {table}")
    await near.execute("SELECT 'something else'")
    assert not cut.sprung.is_set()
    with pytest.raises(psycopg.OperationalError):
        await near.execute(insert, [1], prepare=prepared)
    assert cut.sprung.is_set()
    assert await count(witness, table) == 2


async def test_inside_a_transaction_the_cut_waits_for_its_commit(
    proxy: Proxy, near: Connection, witness: Connection, table: str
) -> None:
    cut = cutting(proxy, f"INTO {table}")

    async def insert() -> None:
        async with near.transaction():
            await near.execute(f"INSERT INTO {table} VALUES (1)")
            await near.execute(f"SELECT * FROM {table}")
            assert not cut.sprung.is_set()

    with pytest.raises(psycopg.OperationalError):
        await insert()
    assert cut.sprung.is_set()
    assert await count(witness, table) == 1


async def test_a_statement_that_failed_is_not_cut(
    proxy: Proxy, near: Connection, table: str
) -> None:
    cut = cutting(proxy, f"INTO {table}")
    with pytest.raises(psycopg.errors.InvalidTextRepresentation):
        await near.execute(f"INSERT INTO {table} VALUES ('not a number')")
    assert not cut.sprung.is_set()
    with pytest.raises(psycopg.OperationalError):
        await near.execute(f"INSERT INTO {table} VALUES (1)")
    assert cut.sprung.is_set()


async def test_a_trapped_statement_is_not_there_until_it_is_let_go(
    proxy: Proxy, near: Connection, witness: Connection, table: str
) -> None:
    trap = proxy.trap(f"INTO {table}".encode(), "asked")
    insert = asyncio.create_task(near.execute(f"INSERT INTO {table} VALUES (1)"))
    await asyncio.wait_for(trap.sprung.wait(), 30)
    assert await count(witness, table) == 0
    trap.let_go()
    await insert
    assert await count(witness, table) == 1


async def test_a_trapped_answer_says_that_the_row_is_there(
    proxy: Proxy, near: Connection, witness: Connection, table: str
) -> None:
    trap = proxy.trap(f"INTO {table}".encode(), "answered")
    insert = asyncio.create_task(near.execute(f"INSERT INTO {table} VALUES (1)"))
    await asyncio.wait_for(trap.sprung.wait(), 30)
    assert await count(witness, table) == 1
    assert not insert.done()
    trap.let_go()
    await insert


async def test_healing_lets_go_what_was_trapped(proxy: Proxy, near: Connection, table: str) -> None:
    trap = proxy.trap(f"INTO {table}".encode(), "asked")
    insert = asyncio.create_task(near.execute(f"INSERT INTO {table} VALUES (1)"))
    await asyncio.wait_for(trap.sprung.wait(), 30)
    proxy.heal()
    await insert


async def test_a_pipeline_is_followed_round_by_round(
    proxy: Proxy, near: Connection, witness: Connection, table: str
) -> None:
    cut = cutting(proxy, f"INTO {table}")

    async def insert() -> None:
        async with near.pipeline() as pipeline:
            await near.execute("SELECT 1")
            await pipeline.sync()
            await near.execute(f"INSERT INTO {table} VALUES (1)")
            await pipeline.sync()

    with pytest.raises(psycopg.OperationalError):
        await insert()
    assert cut.sprung.is_set()
    assert await count(witness, table) == 1
