"""A client that starts many runs: those that are asked for at the same time share a commit.

The first caller of a group sends it; whoever comes meanwhile forms the next group. Each caller
returns when its own run is durable, as ever.

`start_many` takes runs to be new, which is cheaper, until the database refuses a group of them.
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
from hand_rolled.entries import as_json, is_same
from hand_rolled.lifecycle import CONTENT
from two_workers.protocol import Run

MAX_ROWS = 500
BULK_ROWS, IN_FLIGHT = 500, 2
"""Rows to a statement of `start_many`, and how many of these are under way at a time."""

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
INSERT INTO runs (run_id, kind, tenant, priority, payload, budget)
SELECT run_id, kind, tenant, priority::smallint, payload, budget::bigint
FROM ROWS FROM (
    json_array_elements_text(%(run_id)s), json_array_elements_text(%(kind)s),
    json_array_elements_text(%(tenant)s), json_array_elements_text(%(priority)s),
    json_array_elements(%(payload)s), json_array_elements_text(%(budget)s)
) AS asked (run_id, kind, tenant, priority, payload, budget)
"""

# Runs that exist are left as they are. That care costs a sixth of the server's time per new run.
ENQUEUE_MANY = ENQUEUE_NEW + "ON CONFLICT (run_id) DO NOTHING RETURNING run_id"

SHOW = "SELECT * FROM runs_seen WHERE run_id = ANY (%(run_ids)s)"

Started = tuple[Row, Run | Row]
"""A run's row as `runs_seen` shows it, and the content in force: the stored, or what was asked."""


class Starts:
    """Groups the starts of one client."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: dict[str, tuple[Run, asyncio.Future[Started]]] = {}
        self._sending: asyncio.Task[None] | None = None
        self._refused = False

    async def start(self, run: Run) -> Started:
        """What there is now under this id, whether it is new or was there already."""
        as_json(run.payload)  # what cannot be stored fails its own caller, not the whole group
        if run.run_id not in self._waiting:
            future: asyncio.Future[Started] = asyncio.get_running_loop().create_future()
            self._waiting[run.run_id] = (run, future)
            if self._sending is None or self._sending.done():
                self._sending = asyncio.create_task(self._send_all())
        return await asyncio.shield(self._waiting[run.run_id][1])

    async def start_many(self, runs: Iterable[Run]) -> set[str]:
        """Start them all. Returns the ids that are taken by other content."""
        rest = iter(runs)
        sending: list[asyncio.Task[set[str]]] = []
        taken: set[str] = set()
        try:
            while group := list(islice(rest, BULK_ROWS)):
                if len(sending) == IN_FLIGHT:
                    taken |= await sending.pop(0)
                sending.append(asyncio.create_task(self._start_group(group)))
            for task in sending:
                taken |= await task
        finally:
            await asyncio.gather(*sending, return_exceptions=True)
        return taken

    async def _start_group(self, runs: Sequence[Run]) -> set[str]:
        if not self._refused:
            try:
                await self._fetch(ENQUEUE_NEW, **_columns(runs))
            except UniqueViolation:
                self._refused = True  # a client that repeats itself would be, each time
            else:
                return set()
        known = await self._start_unknown(runs)
        return {
            it.run_id for it in runs if it.run_id in known and not is_same(it, known[it.run_id])
        }

    async def _send_all(self) -> None:
        while self._waiting:
            names = list(self._waiting)[:MAX_ROWS]
            group = {name: self._waiting.pop(name) for name in names}
            try:
                known = await self._start_unknown([run for run, _ in group.values()])
                for row in await self._fetch(SHOW, run_ids=names):
                    run, future = group[row["run_id"]]
                    future.set_result((row, known.get(run.run_id, run)))
            except Exception as error:  # whatever it is, each caller must hear of it
                for _, future in group.values():
                    if not future.done():
                        future.set_exception(error)

    async def _start_unknown(self, runs: Sequence[Run]) -> dict[str, Row]:
        """Start those that are new. Returns the content of those that exist."""
        new = {row["run_id"] for row in await self._fetch(ENQUEUE_MANY, **_columns(runs))}
        known = [run.run_id for run in runs if run.run_id not in new]
        rows = await self._fetch(CONTENT, run_ids=known) if known else []
        return {row["run_id"]: row for row in rows}

    async def _fetch(self, statement: LiteralString, **values: Any) -> list[Row]:
        """Safe to repeat: what was started by a commit whose answer was lost exists now."""
        try:
            return await persistently(lambda: self._database.fetch(statement, **values))
        except TRANSIENT as error:
            raise unavailable(error) from error


def _columns(runs: Sequence[Run]) -> dict[str, str]:
    ordered = sorted(runs, key=attrgetter("run_id"))
    columns: dict[str, list[JsonValue]] = {
        "run_id": [run.run_id for run in ordered],
        "kind": [run.kind for run in ordered],
        "tenant": [run.tenant for run in ordered],
        "priority": [run.priority for run in ordered],
        "payload": [run.payload for run in ordered],
        "budget": [run.budget for run in ordered],
        "tenants": [*sorted({run.tenant for run in runs})],
    }
    return {name: as_json(values) for name, values in columns.items()}
