"""A backlog made by SQL, because a million runs are not the point but the claim among them is."""

from __future__ import annotations

from typing import Any

import psycopg

KIND = "bench"

PENDING = """
INSERT INTO runs (run_id, kind, tenant, priority, payload, digest)
SELECT 'pending-' || lpad(n::text, 9, '0'), %(kind)s, 'tenant-' || n %% %(tenants)s, 3, '1', ''
FROM generate_series(%(first)s::int, %(first)s::int + %(count)s - 1) AS n
"""

FINISHED = """
INSERT INTO runs (run_id, kind, tenant, priority, payload, digest, status, closed_at, result,
                  lease_generation)
SELECT 'finished-' || lpad(n::text, 9, '0'), %(kind)s, 'tenant-' || n %% %(tenants)s, 3, '1', '',
       'succeeded', clock_timestamp(), '1', 1
FROM generate_series(%(first)s::int, %(first)s::int + %(count)s - 1) AS n
"""

TENANTS = """
INSERT INTO tenants (tenant) SELECT 'tenant-' || n FROM generate_series(0, %(tenants)s - 1) AS n
ON CONFLICT DO NOTHING
"""


async def fill(
    conn: psycopg.AsyncConnection[Any],
    *,
    pending: int,
    finished: int = 0,
    tenants: int = 20,
    first: int = 1,
) -> None:
    """Add so many runs, numbered from `first`, and leave the statistics as autovacuum would."""
    await conn.execute(TENANTS, {"tenants": tenants})
    for statement, count in (FINISHED, finished), (PENDING, pending):
        await conn.execute(
            statement, {"kind": KIND, "first": first, "count": count, "tenants": tenants}
        )
    await conn.execute("VACUUM ANALYZE runs")
