"""The reader's file by itself: it stands on psycopg alone, and carries any agent."""

from __future__ import annotations

import ast
import asyncio
import sys
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from comparison.story import table
from comparison.story.adapter.settings import Pool, StorySettings, open_pool
from hand_rolled.server import EmbeddedPostgres

LEASE = 1.0


@pytest.fixture
async def pool(postgres: EmbeddedPostgres) -> AsyncIterator[Pool]:
    schema = f"table_{uuid.uuid4().hex[:8]}"
    async with open_pool(
        StorySettings(database_url=postgres.url()), "table-test", schema=schema
    ) as pool:
        async with pool.connection() as connection:
            await connection.execute(f"CREATE SCHEMA {schema}")
            await connection.execute(table.CREATE)
        yield pool


class Agent:
    """Two steps; the second waits for `go`. It notes what it really did."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.in_second = asyncio.Event()
        self.go = asyncio.Event()

    async def __call__(self, run: table.Run) -> dict[str, Any]:
        first = await run.step("first", self.first)
        await run.stop_if_cancelled()
        return {"asked": run.task, "got": [first, await run.step("second", self.second)]}

    async def first(self) -> str:
        self.done.append("first")
        return "one"

    async def second(self) -> str:
        self.done.append("second")
        self.in_second.set()
        await self.go.wait()
        return "two"


def worker(pool: Pool, name: str, agent: Agent) -> table.Worker:
    return table.Worker(pool, name, agent, lease=LEASE, beat_every=LEASE / 4, poll_every=0.05)


def test_it_can_be_copied_as_it_is() -> None:
    imported: set[str] = set()
    for node in ast.walk(ast.parse(Path(table.__file__).read_text())):
        if isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").partition(".")[0])
        elif isinstance(node, ast.Import):
            imported.update(name.name for name in node.names)
    assert imported - sys.stdlib_module_names == {"psycopg", "psycopg_pool"}


async def test_whoever_takes_a_run_over_goes_on_where_it_was(pool: Pool) -> None:
    agent, stop = Agent(), asyncio.Event()
    a, b = worker(pool, "A", agent), worker(pool, "B", agent)
    await a.execute(table.START, run_id="run_123", task=Jsonb("why?"))
    dying = asyncio.create_task(a.work(stop))
    await agent.in_second.wait()
    dying.cancel()  # neither a heartbeat nor an end will come from it
    agent.go.set()
    surviving = asyncio.create_task(b.work(stop))
    async with asyncio.timeout(60):
        while (row := await run_row(b))["status"] == "running":
            await asyncio.sleep(0.02)
    stop.set()
    await surviving
    assert (row["status"], row["lease_owner"]) == ("succeeded", "B")
    assert row["result"] == {"asked": "why?", "got": ["one", "two"]}
    assert agent.done == ["first", "second", "second"]


async def run_row(worker: table.Worker) -> Any:
    [row] = await worker.execute("SELECT * FROM runs")
    return row
