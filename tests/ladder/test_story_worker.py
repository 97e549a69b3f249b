"""The reader's worker by itself: over the story's SQL and psycopg alone, it carries any agent."""

from __future__ import annotations

import ast
import asyncio
import re
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from comparison.story import statements
from comparison.story import worker as reader
from comparison.story.adapter.settings import Pool, StorySettings, open_pool
from hand_rolled.server import EmbeddedPostgres

LEASE = 1.0
NAME = "reader-test"
CUT_RECORD = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE application_name = %(application)s AND wait_event_type = 'Lock'
  AND query LIKE '%%INTO journal%%'
"""

THE_STORY_SAYS = (
    """
WITH candidate AS (
    SELECT run_id
    FROM runs
    WHERE
        status = 'pending'
        OR (
            status = 'running'
            AND lease_expires_at < now()
        )
    ORDER BY created_at
    FOR UPDATE SKIP LOCKED
    LIMIT 1
)
UPDATE runs
SET
    status = 'running',
    lease_owner = $1,
    lease_expires_at = now() + interval '60 seconds'
WHERE run_id IN (SELECT run_id FROM candidate)
RETURNING *;
""",
    """
UPDATE runs
SET
    heartbeat_at = now(),
    lease_expires_at = now() + interval '60 seconds'
WHERE
    run_id = $1
    AND lease_owner = $2;
""",
    """
UPDATE runs
SET cancel_requested = true
WHERE run_id = $1;
""",
)


@pytest.fixture
async def pool(postgres: EmbeddedPostgres) -> AsyncIterator[Pool]:
    schema = f"table_{uuid.uuid4().hex[:8]}"
    async with open_pool(StorySettings(database_url=postgres.url()), NAME, schema=schema) as pool:
        async with pool.connection() as connection:
            await connection.execute(f"CREATE SCHEMA {schema}")
            await connection.execute(statements.CREATE)
        yield pool


class Agent:
    """Two steps; the second waits for `go`. It notes what it really did."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.in_second = asyncio.Event()
        self.go = asyncio.Event()

    async def __call__(self, run: reader.Run) -> dict[str, Any]:
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


def worker(pool: Pool, name: str, agent: Callable[[reader.Run], Awaitable[Any]]) -> reader.Worker:
    return reader.Worker(pool, name, agent, lease=LEASE, beat_every=LEASE / 4, poll_every=0.05)


def test_the_statements_are_the_storys_word_for_word() -> None:
    ours = (statements.CLAIM, statements.HEARTBEAT, statements.CANCEL)
    lease = "make_interval(secs => %(lease)s)"
    assert [
        re.sub(r"%\(\w+\)s", "$", statement.replace(lease, "interval '60 seconds'"))
        for statement in ours
    ] == [re.sub(r"\$\d", "$", said).replace(";", "") for said in THE_STORY_SAYS]


def test_the_worker_is_about_a_hundred_lines_and_can_be_copied_as_it_is() -> None:
    text = Path(reader.__file__).read_text()
    assert len(text.splitlines()) <= 110
    imported: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            imported.add(node.module or "")
        elif isinstance(node, ast.Import):
            imported.update(name.name for name in node.names)
    imported.discard(statements.__name__)
    roots = {name.partition(".")[0] for name in imported}
    assert roots - sys.stdlib_module_names == {"psycopg", "psycopg_pool"}


async def test_whoever_takes_a_run_over_goes_on_where_it_was(pool: Pool) -> None:
    agent, stop = Agent(), asyncio.Event()
    a, b = worker(pool, "A", agent), worker(pool, "B", agent)
    await a.execute(statements.START, run_id="run_123", task=Jsonb("why?"))
    dying = asyncio.create_task(a.work(stop))
    await agent.in_second.wait()
    dying.cancel()  # neither a heartbeat nor an end will come from it
    agent.go.set()
    row = await ended(b)
    assert (row["status"], row["lease_owner"]) == ("succeeded", "B")
    assert row["result"] == {"asked": "why?", "got": ["one", "two"]}
    assert agent.done == ["first", "second", "second"]


async def test_a_run_whose_record_was_cut_off_is_left_to_its_lease(
    pool: Pool, postgres: EmbeddedPostgres
) -> None:
    agent = Agent()
    a = worker(pool, "A", agent)
    await a.execute(statements.START, run_id="run_123", task=Jsonb("why?"))
    ending = asyncio.create_task(ended(a))
    await agent.in_second.wait()
    async with (
        asyncio.timeout(60),
        await psycopg.AsyncConnection.connect(postgres.url()) as other,
    ):
        await other.execute(f"LOCK TABLE {await schema_of(a)}.journal IN EXCLUSIVE MODE")
        agent.go.set()
        while not await a.execute(CUT_RECORD, application=NAME):
            await asyncio.sleep(0.02)
    row = await ending
    assert (row["status"], row["result"]["got"]) == ("succeeded", ["one", "two"])
    assert agent.done == ["first", "second", "second"]


async def test_what_an_agent_raises_ends_its_run_and_not_the_worker(pool: Pool) -> None:
    async def failing(run: reader.Run) -> None:
        raise ValueError("no such day")

    a = worker(pool, "A", failing)
    await a.execute(statements.START, run_id="run_123", task=Jsonb("why?"))
    row = await ended(a)
    assert (row["status"], row["result"]) == ("failed", "ValueError: no such day")
    assert row["closed_at"] is not None


async def schema_of(worker: reader.Worker) -> str:
    [row] = await worker.execute("SELECT current_schema() AS schema")
    schema: str = row["schema"]
    return schema


async def ended(worker: reader.Worker) -> Any:
    """The run's row after its end, `worker` having worked until then."""
    stop = asyncio.Event()
    working = asyncio.create_task(worker.work(stop))
    async with asyncio.timeout(60):
        while (row := await run_row(worker))["closed_at"] is None:
            await asyncio.sleep(0.02)
    stop.set()
    await working
    return row


async def run_row(worker: reader.Worker) -> Any:
    [row] = await worker.execute("SELECT * FROM runs")
    return row
