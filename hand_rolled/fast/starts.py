"""A client that starts many runs: those that are asked for at the same time share a commit.

The first caller of a group sends it; whoever comes meanwhile forms the next group. Each caller
returns when its own run is durable, as ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any, LiteralString

from psycopg.errors import UniqueViolation
from pydantic import JsonValue

from hand_rolled.database import TRANSIENT, Database, Row, persistently, unavailable
from hand_rolled.entries import as_json, digest_of
from two_workers.protocol import Run

MAX_ROWS = 500
BULK_ROWS, IN_FLIGHT = 500, 2
"""While the database inserts two groups of so many, the client prepares the next."""
TURN = 100
"""So many are prepared before whatever else is to be done on this loop gets its turn: the sending
of the group before, for one."""

# (nothing) → pending, many at once. All or nothing: one run that exists refuses them all.
# Runs and tenants are inserted in one order, so two clients that start the same runs in the same
# moment wait for each other instead of deadlocking.
# A column is a JSON array: objects would cost the server more, PostgreSQL's own arrays our driver.
# COPY would cost a little less still, but a client that is paused in the middle of one leaves its
# transaction open, and no timeout of the server ends that.
ENQUEUE_NEW = """
WITH tenant AS (
    INSERT INTO tenants (tenant) SELECT json_array_elements_text(%(tenants)s)
    ON CONFLICT DO NOTHING
)
INSERT INTO runs (run_id, kind, tenant, priority, payload, budget, digest)
SELECT run_id, kind, tenant, priority::smallint, payload, budget::bigint, digest
FROM ROWS FROM (
    json_array_elements_text(%(run_id)s), json_array_elements_text(%(kind)s),
    json_array_elements_text(%(tenant)s), json_array_elements_text(%(priority)s),
    json_array_elements(%(payload)s), json_array_elements_text(%(budget)s),
    json_array_elements_text(%(digest)s)
) AS asked (run_id, kind, tenant, priority, payload, budget, digest)
"""

# Runs that exist are left as they are. That care costs a sixth of the server's time per new run.
ENQUEUE_MANY = ENQUEUE_NEW + "ON CONFLICT (run_id) DO NOTHING"

DIGESTS = """
SELECT run_id, digest FROM runs WHERE run_id IN (SELECT json_array_elements_text(%(run_id)s))
"""
SHOW = "SELECT * FROM runs_seen WHERE run_id = ANY (%(run_ids)s)"

Columns = dict[str, str]
"""Many runs, a JSON array per column."""


class Starts:
    """Groups the starts of one client."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: dict[str, tuple[Run, asyncio.Future[Row]]] = {}
        self._sending: asyncio.Task[None] | None = None

    async def start(self, run: Run) -> Row:
        """The run's row as `runs_seen` shows it, whether it is new or was there already."""
        as_json(run.payload)  # what cannot be stored fails its own caller, not the whole group
        if run.run_id not in self._waiting:
            future: asyncio.Future[Row] = asyncio.get_running_loop().create_future()
            self._waiting[run.run_id] = (run, future)
            if self._sending is None or self._sending.done():
                self._sending = asyncio.create_task(self._send_all())
        return await asyncio.shield(self._waiting[run.run_id][1])

    async def start_many(self, runs: Iterable[Run]) -> dict[str, str]:
        """Start them all. Returns the digests in force of those that may have existed."""
        rest = iter(runs)
        sending: list[asyncio.Task[dict[str, str]]] = []
        known: dict[str, str] = {}
        try:
            while group := list(islice(rest, BULK_ROWS)):
                columns = await _columns(group)
                if len(sending) == IN_FLIGHT:
                    known |= await sending.pop(0)
                # A client that repeats itself would be refused each time.
                send = self._send_many if known else self._send_new
                sending.append(asyncio.create_task(send(columns)))
            for task in sending:
                known |= await task
        finally:
            await asyncio.gather(*sending, return_exceptions=True)
        return known

    async def _send_all(self) -> None:
        while self._waiting:
            names = list(self._waiting)[:MAX_ROWS]
            group = {name: self._waiting.pop(name) for name in names}
            try:
                columns = await _columns([run for run, _ in group.values()])
                await self._fetch(ENQUEUE_MANY, **columns)
                for row in await self._fetch(SHOW, run_ids=names):
                    group[row["run_id"]][1].set_result(row)
            except Exception as error:  # whatever it is, each caller must hear of it
                for _, future in group.values():
                    if not future.done():
                        future.set_exception(error)

    async def _send_new(self, columns: Columns) -> dict[str, str]:
        try:
            await self._fetch(ENQUEUE_NEW, **columns)
        except UniqueViolation:
            return await self._send_many(columns)
        return {}

    async def _send_many(self, columns: Columns) -> dict[str, str]:
        await self._fetch(ENQUEUE_MANY, **columns)
        found = await self._fetch(DIGESTS, run_id=columns["run_id"])
        return {row["run_id"]: row["digest"] for row in found}

    async def _fetch(self, statement: LiteralString, **values: Any) -> list[Row]:
        """Safe to repeat: what was started by a commit whose answer was lost exists now."""
        try:
            return await persistently(lambda: self._database.fetch(statement, **values))
        except TRANSIENT as error:
            raise unavailable(error) from error


async def _columns(runs: Sequence[Run]) -> Columns:
    ordered = sorted(runs, key=attrgetter("run_id"))
    digests: list[JsonValue] = []
    for number, run in enumerate(ordered):
        if number % TURN == 0:
            await asyncio.sleep(0)
        digests.append(digest_of(run))
    columns: dict[str, list[JsonValue]] = {
        "run_id": [run.run_id for run in ordered],
        "kind": [run.kind for run in ordered],
        "tenant": [run.tenant for run in ordered],
        "priority": [run.priority for run in ordered],
        "payload": [run.payload for run in ordered],
        "budget": [run.budget for run in ordered],
        "digest": digests,
        "tenants": [*sorted({run.tenant for run in runs})],
    }
    return {name: as_json(values) for name, values in columns.items()}
