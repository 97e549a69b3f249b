"""The story's table and a worker over it: what a reader would build next. Made to be copied.

The claim, the heartbeat and the cancel flag are the story's statements, word for word but for its
60 seconds, which are a parameter. A journal is added, so that whoever takes a run over goes on
where it was. An agent is any `async def agent(run)` that does its work in `run.step(key, act)`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection, OperationalError
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb
from psycopg_pool import AsyncConnectionPool

logger = logging.getLogger(__name__)

CREATE = """
CREATE TABLE IF NOT EXISTS runs (
    run_id           text PRIMARY KEY,
    task             jsonb NOT NULL,
    created_at       timestamptz NOT NULL DEFAULT now(),
    status           text NOT NULL DEFAULT 'pending',
    lease_owner      text,
    lease_expires_at timestamptz,
    heartbeat_at     timestamptz,
    cancel_requested boolean NOT NULL DEFAULT false,
    result           jsonb,
    failure          text,
    closed_at        timestamptz
);
CREATE INDEX IF NOT EXISTS runs_to_claim ON runs (status, created_at);
CREATE TABLE IF NOT EXISTS journal (
    run_id           text NOT NULL REFERENCES runs,
    key              text NOT NULL,
    outcome          jsonb NOT NULL,
    recorded_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (run_id, key)
);
"""

START = """
INSERT INTO runs (run_id, task) VALUES (%(run_id)s, %(task)s) ON CONFLICT (run_id) DO NOTHING
"""

CLAIM = """
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
    lease_owner = %(worker)s,
    lease_expires_at = now() + make_interval(secs => %(lease)s)
WHERE run_id IN (SELECT run_id FROM candidate)
RETURNING *
"""

HEARTBEAT = """
UPDATE runs
SET
    heartbeat_at = now(),
    lease_expires_at = now() + make_interval(secs => %(lease)s)
WHERE
    run_id = %(run_id)s
    AND lease_owner = %(worker)s
"""

CANCEL = "UPDATE runs SET cancel_requested = true WHERE run_id = %(run_id)s"

CANCEL_REQUESTED = "SELECT cancel_requested FROM runs WHERE run_id = %(run_id)s"

READ_JOURNAL = "SELECT key, outcome FROM journal WHERE run_id = %(run_id)s"

RECORD = """
INSERT INTO journal (run_id, key, outcome) VALUES (%(run_id)s, %(key)s, %(outcome)s)
ON CONFLICT (run_id, key) DO NOTHING
"""

FINISH = """
UPDATE runs
SET status = %(status)s, result = %(result)s, failure = %(failure)s, closed_at = now()
WHERE run_id = %(run_id)s
"""


class Cancelled(Exception):
    """The cancel flag was set when the worker looked."""


@dataclass(frozen=True)
class Worker:
    """Claims runs, one at a time, and carries them out. Durations in seconds."""

    pool: AsyncConnectionPool[AsyncConnection[DictRow]]  # autocommit, with rows as dictionaries
    name: str
    agent: Callable[[Run], Awaitable[Any]]
    lease: float = 60.0
    beat_every: float = 20.0
    poll_every: float = 1.0

    async def work(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set; then finish the run at hand."""
        while not stop.is_set():
            try:
                claimed = await self.execute(CLAIM)
                if claimed:
                    await self.carry_out(claimed[0])
                    continue
            except OperationalError as error:
                logger.warning("the database is away: %s", error)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), self.poll_every)

    async def carry_out(self, row: DictRow) -> None:
        run_id = row["run_id"]
        end: dict[str, Any] = {"status": "succeeded", "result": None, "failure": None}
        heart = asyncio.create_task(self.beat(run_id))
        try:
            rows = await self.execute(READ_JOURNAL, run_id=run_id)
            run = Run(self, run_id, row["task"], {row["key"]: row["outcome"] for row in rows})
            end["result"] = Jsonb(await self.agent(run))
        except OperationalError:
            raise  # not the run's fault: its lease will expire, and somebody resume it
        except Cancelled:
            end["status"] = "cancelled"
        except Exception as error:  # whatever the agent raises ends its run, not the worker
            end |= {"status": "failed", "failure": f"{type(error).__name__}: {error}"}
        finally:
            heart.cancel()
        await self.execute(FINISH, run_id=run_id, **end)

    async def beat(self, run_id: str) -> None:
        while True:
            await asyncio.sleep(self.beat_every)
            try:
                await self.execute(HEARTBEAT, run_id=run_id)
            except OperationalError as error:
                logger.warning("heartbeat of %s: %s", run_id, error)

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
        [flag] = await self.worker.execute(CANCEL_REQUESTED, run_id=self.run_id)
        if flag["cancel_requested"]:
            raise Cancelled

    async def step(self, key: str, act: Callable[[], Awaitable[Any]]) -> Any:
        """The recorded outcome of a step; if there is none, act and record what came of it."""
        if key not in self.journal:
            outcome = self.journal[key] = await act()
            values = {"run_id": self.run_id, "key": key, "outcome": Jsonb(outcome)}
            await self.worker.execute(RECORD, **values)
        return self.journal[key]
