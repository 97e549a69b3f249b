"""What the tests of the proxy ask of PostgreSQL, through it and past it."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from comparison.proxy import Proxy
from hand_rolled.server import EmbeddedPostgres

Connection = psycopg.AsyncConnection[Any]


def through(proxy: Proxy, postgres: EmbeddedPostgres) -> str:
    return make_conninfo(postgres.url(), port=proxy.port)


async def count(witness: Connection, table: str) -> int:
    [[found]] = await (await witness.execute(f"SELECT count(*) FROM {table}")).fetchall()
    return int(found)


async def until(true: Any) -> None:
    async with asyncio.timeout(30):
        while not await true():
            await asyncio.sleep(0.02)


async def being(true: bool) -> bool:
    return true


async def is_one(witness: Connection, table: str) -> bool:
    return await count(witness, table) == 1


async def gone(witness: Connection, pid: int) -> bool:
    found = await witness.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", [pid])
    return not await found.fetchall()
