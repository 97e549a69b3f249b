"""A worker over the story's table, as a reader would build it next. Made to be copied.

An agent is any `async def agent(run)` that does its work in `run.step(key, act)`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection, OperationalError
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb
from psycopg_pool import AsyncConnectionPool

from comparison.story.statements import CLAIM, HEARTBEAT

CANCELLED = "SELECT 1 FROM runs WHERE run_id = %(run_id)s AND cancel_requested"
READ_JOURNAL = "SELECT key, outcome FROM journal WHERE run_id = %(run_id)s"
RECORD = """
INSERT INTO journal (run_id, key, outcome) VALUES (%(run_id)s, %(key)s, %(outcome)s)
ON CONFLICT DO NOTHING
"""
FINISH = """
UPDATE runs SET status = %(status)s, result = %(result)s, closed_at = now()
WHERE run_id = %(run_id)s
"""


class Cancelled(Exception):
    """The cancel flag was set when the worker looked."""


@dataclass(frozen=True)
class Worker:
    """Claims runs, one at a time, and carries them out. Durations in seconds."""

    pool: AsyncConnectionPool[AsyncConnection[DictRow]]  # autocommit, with rows as dictionaries
    name: str
    agent: Callable[["Run"], Awaitable[Any]]
    lease: float = 60.0
    beat_every: float = 20.0
    poll_every: float = 1.0

    async def work(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set; then finish the run at hand."""
        while not stop.is_set():
            try:
                if claimed := await self.execute(CLAIM):
                    await self.carry_out(claimed[0])
                    continue
            except OperationalError as error:
                logging.warning("the database is away: %s", error)
            await asyncio.sleep(self.poll_every)

    async def carry_out(self, row: DictRow) -> None:
        run_id, status, result = row["run_id"], "succeeded", None
        heart = asyncio.create_task(self.beat(run_id))
        try:
            steps = await self.execute(READ_JOURNAL, run_id=run_id)
            journal = {step["key"]: step["outcome"] for step in steps}
            result = await self.agent(Run(self, run_id, row["task"], journal))
        except OperationalError:
            raise  # not the run's fault: its lease will expire, and somebody resume it
        except Cancelled:
            status = "cancelled"
        except Exception as error:  # whatever the agent raises ends its run, not the worker
            status, result = "failed", f"{type(error).__name__}: {error}"
        finally:
            heart.cancel()
        await self.execute(FINISH, run_id=run_id, status=status, result=Jsonb(result))

    async def beat(self, run_id: str) -> None:
        while True:
            await asyncio.sleep(self.beat_every)
            try:
                await self.execute(HEARTBEAT, run_id=run_id)
            except OperationalError as error:
                logging.warning("heartbeat of %s: %s", run_id, error)

    async def execute(self, statement: str, **values: Any) -> list[DictRow]:
        """One statement, a transaction of its own."""
        async with self.pool.connection() as connection:
            values |= {"worker": self.name, "lease": self.lease}
            cursor = await connection.execute(statement, values)
            return await cursor.fetchall() if cursor.description else []


@dataclass(frozen=True)
class Run:
    """A run as its agent sees it: the task, and the steps that were recorded before."""

    worker: Worker
    run_id: str
    task: Any
    journal: dict[str, Any]

    async def stop_if_cancelled(self) -> None:
        """A safe boundary, between two steps. Raises `Cancelled`."""
        if await self.worker.execute(CANCELLED, run_id=self.run_id):
            raise Cancelled

    async def step(self, key: str, act: Callable[[], Awaitable[Any]]) -> Any:
        """The recorded outcome of a step; if there is none, act and record what came of it."""
        if key not in self.journal:
            self.journal[key] = await act()
            outcome = Jsonb(self.journal[key])
            await self.worker.execute(RECORD, run_id=self.run_id, key=key, outcome=outcome)
        return self.journal[key]
