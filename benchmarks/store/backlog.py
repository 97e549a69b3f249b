"""A backlog made by SQL, because a million runs are not the point but the claim among them is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg import sql

KIND = "bench"

PENDING = """
INSERT INTO runs (run_id, kind, tenant, priority, payload)
SELECT 'pending-' || lpad(n::text, 9, '0'), %(kind)s, 'tenant-' || n %% %(tenants)s, 3, '1'
FROM generate_series(%(first)s::int, %(first)s::int + %(count)s - 1) AS n
"""

FINISHED = """
INSERT INTO runs (run_id, kind, tenant, priority, payload, status, closed_at, result,
                  lease_generation)
SELECT 'finished-' || lpad(n::text, 9, '0'), %(kind)s, 'tenant-' || n %% %(tenants)s, 3, '1',
       'succeeded', clock_timestamp(), '1', 1
FROM generate_series(%(first)s::int, %(first)s::int + %(count)s - 1) AS n
"""

TENANTS = """
INSERT INTO tenants (tenant) SELECT 'tenant-' || n FROM generate_series(0, %(tenants)s - 1) AS n
ON CONFLICT DO NOTHING
"""

SECONDARY = """
SELECT c.relname, pg_get_indexdef(i.indexrelid)
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = 'runs'::regclass AND NOT i.indisunique
"""
LARGE = 300_000


async def fill(
    conn: psycopg.AsyncConnection[Any],
    *,
    pending: int,
    finished: int = 0,
    tenants: int = 20,
    first: int = 1,
) -> None:
    """Add so many runs, numbered from `first`, and leave the statistics as autovacuum would."""
    async with _indexes_built_afterwards(conn, pending + finished):
        await _insert(conn, pending, finished, tenants, first)
    await conn.execute("VACUUM ANALYZE runs")


async def _insert(
    conn: psycopg.AsyncConnection[Any], pending: int, finished: int, tenants: int, first: int
) -> None:
    await conn.execute(TENANTS, {"tenants": tenants})
    for statement, count in (FINISHED, finished), (PENDING, pending):
        await conn.execute(
            statement, {"kind": KIND, "first": first, "count": count, "tenants": tenants}
        )


@asynccontextmanager
async def _indexes_built_afterwards(
    conn: psycopg.AsyncConnection[Any], rows: int
) -> AsyncIterator[None]:
    """For many rows this takes half the time, and leaves the same indexes."""
    found = await (await conn.execute(SECONDARY)).fetchall() if rows > LARGE else []
    for name, _ in found:
        await conn.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(name)))
    yield
    for _, definition in found:
        await conn.execute(definition)
