"""A plan that PostgreSQL keeps must be right for all the time that it is kept."""

from __future__ import annotations

from datetime import timedelta

from hand_rolled.entries import as_json
from hand_rolled.fast.claims import CLAIM_ONE_BEHIND, HEAD, PRIORITIES, listed
from tests.hand_rolled.bench import KIND, Store

BACKLOG = """
INSERT INTO runs (run_id, kind, tenant, priority, payload, digest)
SELECT 'run-' || n, %s, 'default', 3, '{}', '' FROM generate_series(1, 5000) n
"""


async def test_a_claim_planned_on_an_empty_table_serves_a_backlog(store: Store) -> None:
    hand = await store.hand()
    await store.rows("ALTER TABLE runs SET (autovacuum_enabled = off)")
    await store.rows("VACUUM ANALYZE runs")
    values = {
        "worker": hand.owner, "kind": KIND, "code": hand.code, "ttl": timedelta(seconds=60),
        "places": as_json(listed([HEAD] * len(PRIORITIES))),
    }  # fmt: skip
    async with store.database.transaction() as connection:
        for _ in range(10):
            await connection.execute(CLAIM_ONE_BEHIND, values, prepare=True)
        cursor = await connection.execute("SELECT name, generic_plans FROM pg_prepared_statements")
        [kept] = await cursor.fetchall()
        assert kept["generic_plans"] > 0
        await store.rows(BACKLOG, KIND)
        cursor = await connection.execute(
            f"EXPLAIN EXECUTE {kept['name']}"  # type: ignore[arg-type] # its own name
            "('me', '[]', 'test', '1', '60 s')"
        )
        plan = "\n".join(row["QUERY PLAN"] for row in await cursor.fetchall())
    assert "Seq Scan on runs" not in plan
    assert "Sort" not in plan, "the head of the queue comes from the index, in its order"
    assert "Join Filter" not in plan, "the run is found by its key"
