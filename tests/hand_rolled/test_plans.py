"""The plans that PostgreSQL chooses, with 200,000 pending and 200,000 finished runs.

Long-lived running rows stand where the head of a naive queue would be.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from hand_rolled import claim, lifecycle, reclaim
from hand_rolled.heartbeat import HEARTBEAT
from hand_rolled.migrate import migrate
from hand_rolled.server import EmbeddedPostgres
from hand_rolled.settings import Settings

FILL = """
INSERT INTO runs (run_id, kind, tenant, priority, payload, created_at, ready_at, status,
                  closed_at, lease_owner, lease_expires_at, heartbeat_at, progress_at)
SELECT state.prefix || n, 'test', 'tenant-' || n %% 20, 3, '{}', state.at + n * interval '1 ms',
       state.at + n * interval '1 ms', state.status,
       CASE state.status WHEN 'succeeded' THEN now() END,
       CASE state.status WHEN 'running' THEN 'other' END,
       CASE state.status WHEN 'running' THEN now() + interval '1 h' END, now(), now()
FROM (VALUES ('old-', 'running', 2000, now() - interval '3 d'),
             ('done-', 'succeeded', 200000, now() - interval '2 d'),
             ('new-', 'pending', 200000, now() - interval '1 d'))
         AS state (prefix, status, count, at),
     LATERAL generate_series(1, state.count) n
"""

MINE: dict[str, Any] = {
    "worker": "me",
    "kind": "test",
    "code": "1",
    "suspect": False,
    "want": 8,
    "ttl": timedelta(seconds=60),
    # reclaim
    "known": [],
    "kinds": ["test"],
    "codes": ["1"],
    "free": 8,
    "in_contact": True,
    "progress_timeout": None,
    "max_takeaways": 3,
    "max_crashes": 3,
    "suspect_after": 2,
    "crash_backoff": timedelta(seconds=1),
    # the owner's writes
    "run_id": "new-1",
    "generation": 1,
    "result": "1",
    "failure": None,
    "target": "succeeded",
    "run_ids": [f"old-{n}" for n in range(1, 9)],
    "generations": [0] * 8,
}


@pytest.fixture(scope="module")
async def full(server: EmbeddedPostgres) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    async with await psycopg.AsyncConnection.connect(server.url(), autocommit=True) as admin:
        await admin.execute("CREATE DATABASE plans")
        await migrate(Settings(database_url=server.url("plans")))
        async with await psycopg.AsyncConnection.connect(
            server.url("plans"), autocommit=True, row_factory=dict_row
        ) as connection:
            await connection.execute(FILL.replace("%%", "%"))
            await connection.execute(
                "INSERT INTO workers (worker_id, process, host, pid, kinds, versions, concurrency) "
                "SELECT w, w, 'h', 1, '{test}', '{1}', 8 FROM unnest('{me,other}'::text[]) w"
            )
            await connection.execute(
                "INSERT INTO tenants SELECT 'tenant-' || n FROM generate_series(0, 19) n"
            )
            await connection.execute("VACUUM ANALYZE")
            yield connection
        await admin.execute("DROP DATABASE plans WITH (FORCE)")


async def plan_of(
    connection: psycopg.AsyncConnection[Any], statement: str, **values: Any
) -> list[dict[str, Any]]:
    """The nodes of the plan as executed; the changes are rolled back."""
    async with connection.transaction(force_rollback=True):
        explained = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + statement
        cursor = await connection.execute(explained, MINE | values)  # type: ignore[arg-type] # psycopg asks for a literal
        row = await cursor.fetchone()
    assert row is not None
    nodes: list[dict[str, Any]] = []

    def collect(node: dict[str, Any]) -> None:
        nodes.append(node)
        for child in node.get("Plans", []):
            collect(child)

    collect(row["QUERY PLAN"][0]["Plan"])
    return nodes


def reads_of_runs(nodes: list[dict[str, Any]]) -> list[tuple[str, str | None, float]]:
    return [
        (n["Node Type"], n.get("Index Name"), n["Actual Rows"] * n["Actual Loops"])
        for n in nodes
        if n.get("Relation Name") == "runs" and n["Node Type"] != "ModifyTable"
    ]


def assert_cheap(nodes: list[dict[str, Any]], *, index: str, most_rows: int) -> None:
    reads = reads_of_runs(nodes)
    assert index in [name for _, name, _ in reads], reads
    assert not [read for read in reads if read[0] == "Seq Scan"], reads
    assert max(rows for _, _, rows in reads) <= most_rows, reads
    assert nodes[0]["Shared Hit Blocks"] + nodes[0]["Shared Read Blocks"] < 2000


async def test_the_claim_walks_an_index_and_sorts_nothing(full) -> None:
    nodes = await plan_of(full, claim.CLAIM)
    assert_cheap(nodes, index="runs_pending", most_rows=8)
    assert not [n for n in nodes if "Sort" in n["Node Type"]]


async def test_the_claim_within_limits_walks_one_index_per_tenant(full) -> None:
    await full.execute("UPDATE limits SET counted = true, max_active_per_tenant = 3")
    try:
        nodes = await plan_of(full, claim.CLAIM_WITHIN_LIMITS)
    finally:
        await full.execute("UPDATE limits SET counted = false, max_active_per_tenant = NULL")
    assert_cheap(nodes, index="runs_pending_by_tenant", most_rows=20)
    sorts = [n for n in nodes if "Sort" in n["Node Type"]]
    assert all(n["Actual Rows"] <= 20 for n in sorts), "only the tenants are sorted, never the runs"


async def test_a_claim_within_limits_asks_one_tenant_after_the_other(full) -> None:
    await full.execute("UPDATE limits SET counted = true, max_active_per_tenant = 3")
    try:
        nodes = await plan_of(full, claim.CLAIM_WITHIN_LIMITS, want=1)
    finally:
        await full.execute("UPDATE limits SET counted = false, max_active_per_tenant = NULL")
    asked = [n for n in nodes if n.get("Index Name") == "runs_pending_by_tenant"]
    assert [n["Actual Loops"] for n in asked] == [1, 1], "whether runs wait, and which: not of all"


async def test_the_claim_is_the_same_while_somebody_refers_to_the_run(full) -> None:
    await full.execute("CREATE TABLE events (run_id text REFERENCES runs)")
    info = full.info
    async with await psycopg.AsyncConnection.connect(
        f"host={info.host} port={info.port} user={info.user} password={info.password} dbname=plans"
    ) as other:
        await other.execute("INSERT INTO events VALUES ('new-1')")  # not committed
        nodes = await plan_of(full, claim.CLAIM)
        await other.rollback()
    [updated] = [n for n in nodes if n["Node Type"] == "ModifyTable" and n["Operation"] == "Update"]
    assert updated["Actual Rows"] == 8
    assert_cheap(nodes, index="runs_pending", most_rows=8)


async def test_the_reclaim_reads_running_rows_only(full) -> None:
    nodes = await plan_of(full, reclaim.RECLAIM)
    assert_cheap(nodes, index="runs_running", most_rows=2000)


@pytest.mark.parametrize(
    ("statement", "index"),
    [(reclaim.PROMOTE, "runs_due"), (reclaim.NEXT_DUE, "runs_due")],
    ids=["promote", "next due"],
)
async def test_due_runs_are_found_by_their_index(full, statement: str, index: str) -> None:
    assert_cheap(await plan_of(full, statement), index=index, most_rows=100)


@pytest.mark.parametrize(
    "statement", [HEARTBEAT, lifecycle.FINISH, lifecycle.LEAVE.replace("%(wait)s", "NULL")
                  .replace("%(signals_seen)s", "NULL").replace("%(mismatch)s", "NULL")],
    ids=["heartbeat", "finish", "leave"],
)  # fmt: skip
async def test_the_owners_writes_go_by_key(full, statement: str) -> None:
    assert_cheap(await plan_of(full, statement), index="runs_pkey", most_rows=8)


async def test_an_empty_poll_touches_almost_nothing(full) -> None:
    nodes = await plan_of(full, claim.LOOK.replace("%(kind)s", "'unheard-of'"))
    assert nodes[0]["Shared Hit Blocks"] + nodes[0]["Shared Read Blocks"] < 20


async def test_heartbeats_are_hot(full) -> None:
    """No index mentions a column of the lease, and pages have room for the next version."""
    beats = dict(MINE, run_ids=[f"old-{n}" for n in range(1, 1001)], generations=[0] * 1000)
    beats["worker"] = "other"
    await full.execute("SELECT pg_stat_force_next_flush()")
    counted = (
        "SELECT n_tup_upd AS updates, n_tup_hot_upd AS hot "
        "FROM pg_stat_user_tables WHERE relname = 'runs'"
    )
    before = await (await full.execute(counted)).fetchone()
    for _ in range(20):
        assert len(await (await full.execute(HEARTBEAT, beats)).fetchall()) == 1000
    await full.execute("SELECT pg_stat_force_next_flush()")
    after = await (await full.execute(counted)).fetchone()
    assert before is not None
    assert after is not None
    updates, hot = after["updates"] - before["updates"], after["hot"] - before["hot"]
    assert updates == 20_000
    assert hot / updates >= 0.95
