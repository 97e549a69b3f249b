"""What a silence withheld: it is counted, followed, and what the server said to it is known."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from comparison.proxy import Proxy
from tests.ladder.proxied import Connection, being, count, gone, until


async def test_what_a_silence_withheld_is_followed_to_the_servers_word(
    proxy: Proxy, near: Connection, table: str
) -> None:
    await near.execute(f"INSERT INTO {table} VALUES (1)")
    proxy.silence()
    asked = asyncio.create_task(near.execute(f"UPDATE {table} SET n = 2 WHERE n = %s", [7]))
    await until(lambda: being(len(proxy.late) == 1))
    [late] = proxy.late
    assert (late.passed_ns, late.request.outcome) == (None, None)
    proxy.heal()
    await asked
    assert late.passed_ns is not None
    assert late.request.outcome == "refused", "no row was there to be written"
    await near.execute(f"UPDATE {table} SET n = 2")
    assert proxy.late == [late], "nothing is late after the silence"


async def test_all_that_is_said_in_a_silence_is_late_and_comes_in_its_order(
    proxy: Proxy, near: Connection, witness: Connection, table: str
) -> None:
    """Also what came when the proxy already held something back."""
    near.pgconn.enter_pipeline_mode()
    proxy.silence("to_server")
    for n in (1, 2):
        near.pgconn.send_query_params(f"INSERT INTO {table} VALUES ({n})".encode(), None)
        near.pgconn.pipeline_sync()
        near.pgconn.flush()
        await until(lambda n=n: being(len(proxy.late) == n))
    assert await count(witness, table) == 0
    proxy.heal()
    await until(lambda: being(all(late.request.outcome == "accepted" for late in proxy.late)))
    rows = await (await witness.execute(f"SELECT n FROM {table} ORDER BY ctid")).fetchall()
    assert rows == [(1,), (2,)]


async def test_what_was_withheld_when_its_connection_ended_has_no_answer(
    proxy: Proxy, near: Connection, witness: Connection, table: str
) -> None:
    proxy.silence()
    asked = asyncio.create_task(near.execute(f"INSERT INTO {table} VALUES (1)"))
    await until(lambda: being(len(proxy.late) == 1))
    pid = near.info.backend_pid
    await witness.execute("SELECT pg_terminate_backend(%s)", [pid])
    await until(lambda: gone(witness, pid))
    proxy.heal()
    with pytest.raises(psycopg.OperationalError):
        await asked
    assert proxy.late[0].request.outcome is None
    assert await count(witness, table) == 0


async def test_what_was_rolled_back_was_not_accepted(
    proxy: Proxy, near: Connection, table: str
) -> None:
    trap = proxy.trap(f"INTO {table}".encode(), "answered")
    async with near.transaction():
        await near.execute(f"INSERT INTO {table} VALUES (1)")
        raise psycopg.Rollback
    assert not trap.sprung.is_set()
