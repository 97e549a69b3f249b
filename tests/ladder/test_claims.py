"""What three claims do when two workers make them at once: rung 2, statement by statement."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from comparison.ladder import table
from comparison.ladder.rungs import r02_no_skip_locked
from comparison.ladder.stage import create
from hand_rolled.server import EmbeddedPostgres

Connection = psycopg.AsyncConnection[Any]
WHO = {"lease": 60.0, "patience": 3600.0}


@dataclass
class Desk:
    """Two workers' connections, a witness, and two pending runs."""

    a: Connection
    b: Connection
    witness: Connection

    async def claims(self, statement: str) -> tuple[bool, list[str], list[str]]:
        """A claims and does not commit yet; B claims. Did B wait, and what did each get?"""
        async with self.a.transaction():
            first = await self._claim(self.a, statement, "A")
            second = asyncio.create_task(self._claim(self.b, statement, "B"))
            waited = await self._waits_or_is_done(second)
        return waited, first, await second

    async def _claim(self, connection: Connection, statement: str, owner: str) -> list[str]:
        cursor = await connection.execute(statement, {**WHO, "owner": owner})
        return [row["run_id"] for row in await cursor.fetchall()]

    async def _waits_or_is_done(self, task: asyncio.Task[list[str]]) -> bool:
        query = "SELECT wait_event_type = 'Lock' AS waits FROM pg_stat_activity WHERE pid = %s"
        async with asyncio.timeout(30):
            while not task.done():
                cursor = await self.witness.execute(query, [self.b.info.backend_pid])
                [row] = await cursor.fetchall()
                if row["waits"]:
                    return True
                await asyncio.sleep(0.01)
        return False


@pytest.fixture
async def desk(postgres: EmbeddedPostgres) -> AsyncIterator[Desk]:
    schema = f"claims_{uuid.uuid4().hex[:8]}"

    async def connect() -> Connection:
        connection = await psycopg.AsyncConnection.connect(
            postgres.url(), autocommit=True, row_factory=dict_row
        )
        await connection.execute(f"SET search_path = {schema}")
        return connection

    witness, a, b = await connect(), await connect(), await connect()
    await create(witness, schema)
    for run in ("run_1", "run_2"):
        await witness.execute(table.START, {"run_id": run, "payload": "{}"})
    yield Desk(a, b, witness)
    await witness.execute(f"DROP SCHEMA {schema} CASCADE")
    for connection in (a, b, witness):
        await connection.close()


async def test_without_a_lock_the_second_waits_and_takes_the_same_work(desk: Desk) -> None:
    assert await desk.claims(r02_no_skip_locked.CLAIM) == (True, ["run_1"], ["run_1"])


async def test_with_a_lock_but_no_skip_it_takes_the_next_after_waiting(desk: Desk) -> None:
    for_update = table.CLAIM.replace("FOR UPDATE SKIP LOCKED", "FOR UPDATE")
    assert await desk.claims(for_update) == (True, ["run_1"], ["run_2"])


async def test_with_skip_locked_it_takes_the_next_at_once(desk: Desk) -> None:
    assert await desk.claims(table.CLAIM) == (False, ["run_1"], ["run_2"])
