"""A client that starts many runs: those that are asked for at the same time share a commit.

The first caller of a group sends it; whoever comes meanwhile forms the next group. Each caller
returns when its own run is durable, as ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any, LiteralString

from psycopg.errors import UniqueViolation

from hand_rolled.database import TRANSIENT, Database, Row, persistently, unavailable
from hand_rolled.entries import as_json

MAX_ROWS = 500
BULK_ROWS, IN_FLIGHT = 500, 2
"""While the database inserts two groups of so many, the client prepares the next."""
TURN = 100
"""So many are prepared before whatever else runs on this loop, and what is to be sent, gets on."""

# (nothing) → pending, many at once. All or nothing: one run that exists refuses them all.
# Runs and tenants are inserted in one order, so two clients that start the same runs in the same
# moment wait for each other instead of deadlocking.
# A column is a JSON array: rows as JSON objects cost the server more, and PostgreSQL's own arrays
# cost our driver more. COPY would save a little, but it is a statement that a paused client leaves
# half sent, with its transaction open, and no timeout of the server ends it.
ENQUEUE_NEW = """
WITH tenant AS (
    INSERT INTO tenants (tenant) SELECT json_array_elements_text(%(tenants)s)
    ON CONFLICT DO NOTHING
)
INSERT INTO runs (run_id, kind, tenant, priority, payload, budget, digest)
SELECT run_id, kind, tenant, priority::smallint, payload::json, budget::bigint, digest
FROM ROWS FROM (
    json_array_elements_text(%(run_id)s), json_array_elements_text(%(kind)s),
    json_array_elements_text(%(tenant)s), json_array_elements_text(%(priority)s),
    json_array_elements_text(%(payload)s), json_array_elements_text(%(budget)s),
    json_array_elements_text(%(digest)s)
) AS asked (run_id, kind, tenant, priority, payload, budget, digest)
"""

# Runs that exist are left as they are. That care costs a sixth of the server's time per new run.
ENQUEUE_MANY = ENQUEUE_NEW + "ON CONFLICT (run_id) DO NOTHING"

DIGESTS = """
SELECT run_id, digest FROM runs WHERE run_id IN (SELECT json_array_elements_text(%(run_id)s))
"""
SHOW = "SELECT * FROM runs_seen WHERE run_id = ANY (%(run_ids)s)"

Values = dict[str, Any]
"""The columns of a run to be started; `payload` is JSON text."""
Columns = dict[str, str]
"""Many runs, a JSON array per column."""


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
        """Start them all. Returns the digests in force of those that may have existed."""
        rest = iter(runs)
        sending: list[asyncio.Task[dict[str, str]]] = []
        known: dict[str, str] = {}
        try:
            while group := await _next_group(rest):
                columns = _columns(group)
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
                await self._fetch(
                    ENQUEUE_MANY, **_columns([values for values, _ in group.values()])
                )
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


async def _next_group(rest: Iterator[Values]) -> list[Values]:
    """Up to `BULK_ROWS` of them."""
    group: list[Values] = []
    while len(group) < BULK_ROWS and (some := list(islice(rest, TURN))):
        group += some
        await asyncio.sleep(0)
    return group


def _columns(runs: Sequence[Values]) -> Columns:
    ordered = sorted(runs, key=itemgetter("run_id"))
    columns = {name: as_json([values[name] for values in ordered]) for name in ordered[0]}
    return columns | {"tenants": as_json(sorted({values["tenant"] for values in runs}))}
