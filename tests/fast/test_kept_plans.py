"""A plan that PostgreSQL keeps must be right for all the time that it is kept."""

from __future__ import annotations

import pytest

from hand_rolled import database
from hand_rolled.settings import Settings
from tests.hand_rolled.bench import KIND, Store

BACKLOG = """
INSERT INTO runs (run_id, kind, tenant, priority, payload)
SELECT 'run-' || n, %s, 'default', 3, '{}' FROM generate_series(1, 5000) n
"""
KEPT = """
SELECT name FROM pg_prepared_statements
WHERE statement LIKE '%%AS place%%' AND generic_plans > 0
"""


@pytest.fixture
def settings(url: str) -> Settings:
    """One connection: what is kept is kept per connection."""
    return Settings(database_url=url, pool_size=1, notify=False, fast=True)


async def test_a_claim_planned_on_an_empty_table_serves_a_backlog(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand = await store.hand()
    await store.rows("ALTER TABLE runs SET (autovacuum_enabled = off)")
    await store.rows("VACUUM ANALYZE runs")
    monkeypatch.setattr(database, "PLANS_LAST", 3600.0)
    for _ in range(10):
        assert await hand.claim() == []
    [kept] = await store.database.fetch(KEPT)
    await store.rows(BACKLOG, KIND)
    heads = ", ".join(["'-infinity', ''"] * 5)
    explain = f"EXPLAIN EXECUTE {kept['name']} ('me', {heads}, 'test', '1', '60 s')"
    assert "Seq Scan on runs" in await _plan(store, explain), "what would be kept is no good"
    monkeypatch.setattr(database, "PLANS_LAST", 0.0)
    plan = await _plan(store, explain)
    assert "Seq Scan on runs" not in plan
    assert "Sort" not in plan, "the head of the queue comes from the index, in its order"
    assert "Index Cond: (run_id = " in plan


async def _plan(store: Store, explain: str) -> str:
    rows = await store.database.fetch(explain)  # type: ignore[arg-type] # a name of PostgreSQL's
    return "\n".join(row["QUERY PLAN"] for row in rows)
