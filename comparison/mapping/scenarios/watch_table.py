"""The table's side: rows of `runs`, `ownership` and `journal`, as any reader sees them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg.rows import dict_row

from comparison.mapping.recording import Kind, Moment
from comparison.mapping.scenarios.watch import LOOK, Watching, moment, since
from comparison.mapping.tour.steps import Stay, Visit
from hand_rolled.database import Database
from hand_rolled.entries import Entry, Place, as_json
from hand_rolled.journal import Journal
from hand_rolled.lease import Lease, LeaseLost, clock
from hand_rolled.settings import read_settings
from two_workers.steps import Succeeded, dump_outcome, fingerprint

ROW = (
    "status", "lease_owner", "lease_expires_at", "heartbeat_at", "progress_at", "lease_generation",
    "cancel_requested", "signals", "crashes", "solo_crashes", "takeaways", "releases", "suspect",
    "mismatch", "cost", "reserved", "holds_slot", "tenant", "failure", "version",
)  # fmt: skip


CLAIMERS = """
SELECT application_name AS name FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND query LIKE '%%head AS MATERIALIZED%%'
"""
"""Connections, named after their worker, whose newest statement is a claim."""


class TableObserver(Watching):
    """Rows of `runs`, `ownership` and `journal`."""

    def __init__(self, database_url: str) -> None:
        super().__init__()
        self._url = database_url
        self._versions: dict[str, int] = {}

    async def _look(self) -> None:
        columns = ", ".join(ROW)
        query = (
            f"SELECT run_id, extract(epoch FROM clock_timestamp())::float8 AS now, {columns} "
            "FROM runs WHERE run_id = ANY (%s) ORDER BY run_id"
        )
        async with await self._connect() as connection:
            while True:
                for row in await _rows(connection, query, [self._runs]):
                    run, now = row.pop("run_id"), row.pop("now")
                    if self._versions.get(run) != row["version"]:
                        self._versions[run] = row["version"]
                        self._seen.append(moment("row", now, run, row["status"], row))
                await asyncio.sleep(LOOK)

    @asynccontextmanager
    async def held(self, run_id: str) -> AsyncIterator[None]:
        async with await self._connect() as connection, connection.transaction():
            await _rows(connection, "SELECT FROM runs WHERE run_id = %s FOR UPDATE", [run_id])
            yield
            async with asyncio.timeout(60), await self._connect() as other:
                claimers: set[str] = set()
                while len(claimers) < 2:
                    claimers |= {row["name"] for row in await _rows(other, CLAIMERS, [])}
                    await asyncio.sleep(LOOK)

    async def claims(self, run_id: str) -> int:
        query = "SELECT event FROM ownership WHERE run_id = %s"
        async with await self._connect() as connection:
            events = [row["event"] for row in await _rows(connection, query, [run_id])]
        return sum(event in ("claimed", "reclaimed") for event in events)

    def renewals(self, run_id: str) -> int:
        beats = {m.data["heartbeat_at"] for m in self._seen if m.run == run_id}
        return max(0, len(beats - {None}) - 1)  # the first is the claim's own

    def mismatches(self, run_id: str) -> bool:
        return any(m.run == run_id and m.data["mismatch"] is not None for m in self._seen)

    async def moments(self, began: float) -> list[Moment]:
        async with await self._connect() as connection:
            owned = await _rows(
                connection,
                "SELECT run_id, at, event, lease_generation, owner, reason FROM ownership "
                "WHERE run_id = ANY (%s) ORDER BY run_id, version",
                [self._runs],
            )
            journal = await _rows(
                connection,
                "SELECT run_id, recorded_at, batch || '.' || position AS step, kind, succeeded, "
                "attempt, cost, lease_generation, worker FROM journal "
                "WHERE run_id = ANY (%s) ORDER BY run_id, batch, position",
                [self._runs],
            )
        return since(
            began,
            [
                *self._seen,
                *(_taken("owned", row, "at", "event") for row in owned),
                *(_taken("recorded", row, "recorded_at", "step") for row in journal),
            ],
        )

    async def stale_commit(self, call: Mapping[str, Any], step: Visit) -> str:
        settings = read_settings({"DATABASE_URL": self._url})
        lease = Lease(call["run"], call["fence"][0], call["worker"], trusted_until=clock() + 60)
        batch, position = map(int, call["key"].split("."))
        entry = Entry(
            kind="visit",
            fingerprint=fingerprint(step),
            outcome=as_json(dump_outcome(step, Succeeded(value=Stay(place=step.place)))),
            succeeded=True,
            attempt=1,
        )
        async with Database(settings, application="stale").opened() as database:
            journal = Journal(database, lease, call["worker"])
            try:
                await journal.record(Place(batch, position), entry)
            except LeaseLost as refused:
                return f"LeaseLost: {refused}"
        return "accepted"

    async def _connect(self) -> psycopg.AsyncConnection[dict[str, Any]]:
        return await psycopg.AsyncConnection.connect(
            self._url, autocommit=True, row_factory=dict_row
        )


async def _rows(
    connection: psycopg.AsyncConnection[dict[str, Any]], query: str, values: list[Any]
) -> list[dict[str, Any]]:
    cursor = await connection.execute(query.encode(), values)
    return await cursor.fetchall()


def _taken(kind: Kind, row: dict[str, Any], at: str, what: str) -> Moment:
    return moment(kind, row.pop(at).timestamp(), row.pop("run_id"), str(row.pop(what)), row)
