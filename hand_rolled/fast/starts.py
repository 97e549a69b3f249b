"""A client that starts many runs: those that are asked for at the same time share a commit.

The first caller of a group sends it; whoever comes meanwhile forms the next group. Each caller
returns when its own run is durable, as ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, LiteralString

from hand_rolled.database import TRANSIENT, Database, Row, persistently, unavailable
from hand_rolled.entries import as_json

MAX_ROWS = 500
BULK_ROWS, IN_FLIGHT = 400, 2
"""While the database inserts two groups of so many, the client prepares the next."""

# (nothing) → pending, many at once. Runs that exist are left as they are; their ids are returned.
# Tenants and runs are inserted in one order, so two clients that start the same runs in the same
# moment wait for each other instead of deadlocking.
# As JSON: arrays cost the client twice as much processor time, and what COPY saves the server
# it costs the client.
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
    RETURNING run_id
)
SELECT run_id FROM asked EXCEPT SELECT run_id FROM started
"""

DIGESTS = "SELECT run_id, digest FROM runs WHERE run_id = ANY (%(run_ids)s)"
SHOW = "SELECT * FROM runs_seen WHERE run_id = ANY (%(run_ids)s)"

Values = dict[str, Any]
"""The columns of a run to be started; `payload` is JSON text."""


class Starts:
    """Groups the starts of one client."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: dict[str, tuple[Values, asyncio.Future[Row]]] = {}
        self._sending: asyncio.Task[None] | None = None

    async def start(self, values: Values) -> Row:
        """The run's row as `runs_seen` shows it, whether it is new or was there already."""
        run_id = values["run_id"]
        if run_id not in self._waiting:
            future: asyncio.Future[Row] = asyncio.get_running_loop().create_future()
            self._waiting[run_id] = (values, future)
            if self._sending is None or self._sending.done():
                self._sending = asyncio.create_task(self._send_all())
        return await asyncio.shield(self._waiting[run_id][1])

    async def start_many(self, runs: Iterable[Values]) -> dict[str, str]:
        """Start them all. Returns the digests of those that existed, which are left as they are."""
        rest = iter(runs)
        sending: list[asyncio.Task[list[Row]]] = []
        existed: list[str] = []
        try:
            while group := list(islice(rest, BULK_ROWS)):
                text = as_json(_in_order(group))
                if len(sending) == IN_FLIGHT:
                    existed += [row["run_id"] for row in await sending.pop(0)]
                sending.append(asyncio.create_task(self._send(text)))
                await asyncio.sleep(0)  # let it go out before the next group is prepared
            for task in sending:
                existed += [row["run_id"] for row in await task]
        finally:
            await asyncio.gather(*sending, return_exceptions=True)
        found = await self._fetch(DIGESTS, run_ids=existed) if existed else []
        return {row["run_id"]: row["digest"] for row in found}

    async def _send_all(self) -> None:
        while self._waiting:
            names = list(self._waiting)[:MAX_ROWS]
            group = {name: self._waiting.pop(name) for name in names}
            try:
                await self._send(as_json(_in_order([values for values, _ in group.values()])))
                for row in await self._fetch(SHOW, run_ids=names):
                    group[row["run_id"]][1].set_result(row)
            except Exception as error:  # whatever it is, each caller must hear of it
                for _, future in group.values():
                    if not future.done():
                        future.set_exception(error)

    async def _send(self, runs: str) -> list[Row]:
        return await self._fetch(ENQUEUE_MANY, runs=runs)

    async def _fetch(self, statement: LiteralString, **values: Any) -> list[Row]:
        """Safe to repeat: what was started by a commit whose answer was lost exists now."""
        try:
            return await persistently(lambda: self._database.fetch(statement, **values))
        except TRANSIENT as error:
            raise unavailable(error) from error


def _in_order(runs: Sequence[Values]) -> list[Any]:
    return sorted(runs, key=lambda values: values["run_id"])
