"""A client that starts many runs: those that are asked for at the same time share a commit.

The first caller of a group sends it; whoever comes meanwhile forms the next group. Each caller
returns when its own run is durable, as ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, LiteralString

from hand_rolled.database import Database, Row, persistently
from hand_rolled.journal import as_json

MAX_ROWS = 500
BULK_ROWS = 250
"""While the database inserts so many, the client prepares the next."""

# (nothing) → pending, many at once. Runs that exist are left as they are, and are not returned.
# Tenants and runs are inserted in one order, so two clients that start the same runs in the same
# moment wait for each other instead of deadlocking.
ENQUEUE_MANY = """
WITH asked AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%(runs)s::json)
        AS asked (run_id text, kind text, tenant text, priority smallint, payload text,
                  budget bigint, digest text)
), tenant AS (
    INSERT INTO tenants (tenant) SELECT DISTINCT tenant FROM asked ORDER BY tenant
    ON CONFLICT DO NOTHING
), started AS (
    INSERT INTO runs (run_id, kind, tenant, priority, payload, budget, digest)
    SELECT run_id, kind, tenant, priority, payload::json, budget, digest FROM asked
    ON CONFLICT (run_id) DO NOTHING
    RETURNING *
)
"""

SHOW_NEW = ENQUEUE_MANY + "SELECT * FROM started"

SHOW_OLD = (
    ENQUEUE_MANY
    + "SELECT run_id FROM asked WHERE NOT EXISTS (SELECT FROM started s WHERE s.run_id = asked.run_id)"
)

Values = dict[str, Any]
"""The columns of a run to be started; `payload` is JSON text."""


class Starts:
    """Groups the starts of one client."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: dict[str, tuple[Values, asyncio.Future[Row | None]]] = {}
        self._sending: asyncio.Task[None] | None = None

    async def start(self, values: Values) -> Row | None:
        """The new run's row, or None if there was such a run already."""
        if values["run_id"] in self._waiting:
            return None  # whoever asks twice at once is told what the first one made
        future: asyncio.Future[Row | None] = asyncio.get_running_loop().create_future()
        self._waiting[values["run_id"]] = (values, future)
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send_all())
        return await asyncio.shield(future)

    async def start_many(self, runs: Sequence[Values]) -> list[str]:
        """Start them all. Returns the ids of those that existed, which are left as they are."""
        existed: list[Row] = []
        sending: asyncio.Task[list[Row]] | None = None
        for first in range(0, len(runs), BULK_ROWS):
            text = as_json(_in_order(runs[first : first + BULK_ROWS]))
            existed += await sending if sending is not None else []
            sending = asyncio.create_task(self._send(SHOW_OLD, text))
            await asyncio.sleep(0)  # let it go out before the next group is prepared
        existed += await sending if sending is not None else []
        return [row["run_id"] for row in existed]

    async def _send_all(self) -> None:
        while self._waiting:
            names = list(self._waiting)[:MAX_ROWS]
            group = [self._waiting.pop(name) for name in names]
            text = as_json(_in_order([values for values, _ in group]))
            try:
                rows = await self._send(SHOW_NEW, text)
            except Exception as error:  # whatever it is, each caller must hear of it
                for _, future in group:
                    future.set_exception(error)
                continue
            found = {row["run_id"]: row for row in rows}
            for values, future in group:
                future.set_result(found.get(values["run_id"]))

    async def _send(self, statement: LiteralString, runs: str) -> list[Row]:
        """Safe to repeat: what was started by a commit whose answer was lost exists now."""
        return await persistently(lambda: self._database.fetch(statement, runs=runs))


def _in_order(runs: Sequence[Values]) -> list[Any]:
    return sorted(runs, key=lambda values: values["run_id"])
