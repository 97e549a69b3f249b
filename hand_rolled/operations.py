"""What an operator does: take runs out and put them back, start again what failed, tidy up, check.

All are safe while workers work, and safe to repeat.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import LiteralString

from hand_rolled import views
from hand_rolled.database import Database, Row, persistently
from hand_rolled.lifecycle import RESUME, SUSPEND
from two_workers.errors import BadInput, RunNotFound
from two_workers.protocol import RunView

# A failed or cancelled run is never opened again: every run ends once. Its content starts anew.
REDRIVE = """
INSERT INTO runs (run_id, kind, tenant, priority, payload, budget)
SELECT %(new_run_id)s, kind, tenant, priority, payload, budget
FROM runs WHERE run_id = %(run_id)s AND status IN ('failed', 'cancelled')
ON CONFLICT (run_id) DO NOTHING
RETURNING run_id
"""

LIST_WORKERS = """
SELECT w.worker_id, w.host, w.pid, w.kinds, w.versions, w.concurrency, w.started_at,
       w.heartbeat_at, w.stopped_at, w.dead_at,
       CASE WHEN w.dead_at IS NOT NULL THEN 'dead'
            WHEN w.stopped_at IS NOT NULL THEN 'stopped'
            WHEN w.heartbeat_at < clock_timestamp() - %(silent_after)s THEN 'silent'
            ELSE 'alive' END AS state,
       (SELECT count(*) FROM runs r
        WHERE r.status = 'running' AND r.lease_owner = w.worker_id) AS runs
FROM workers w
WHERE %(all)s OR w.stopped_at IS NULL AND w.dead_at IS NULL
   OR EXISTS (SELECT FROM runs r WHERE r.status = 'running' AND r.lease_owner = w.worker_id)
ORDER BY w.started_at DESC
"""

# Ready runs by kind, with those that no live worker serves first.
LIST_READY = """
SELECT r.kind, count(*) AS runs, min(r.created_at) AS oldest, bool_or(r.served) AS served
FROM runs_seen r WHERE r.status = 'pending'
GROUP BY r.kind ORDER BY bool_or(r.served), r.kind
"""

# In batches, and in the lock order: a run that ended stays ended, so nobody else wants its row.
PRUNE = """
WITH old AS MATERIALIZED (
    SELECT run_id FROM runs
    WHERE status IN ('succeeded', 'failed', 'cancelled')
      AND closed_at < clock_timestamp() - %(older_than)s
    ORDER BY run_id LIMIT 1000
    FOR UPDATE SKIP LOCKED
), journal_gone AS (DELETE FROM journal j USING old WHERE j.run_id = old.run_id
), steps_gone AS (DELETE FROM open_steps o USING old WHERE o.run_id = old.run_id
), signals_gone AS (DELETE FROM signals s USING old WHERE s.run_id = old.run_id
), history_gone AS (DELETE FROM ownership h USING old WHERE h.run_id = old.run_id)
DELETE FROM runs r USING old WHERE r.run_id = old.run_id
RETURNING r.run_id
"""

PRUNE_WORKERS = """
DELETE FROM workers w
WHERE coalesce(w.stopped_at, w.dead_at, w.heartbeat_at) < clock_timestamp() - %(older_than)s
  AND NOT EXISTS (SELECT FROM runs r WHERE r.status = 'running' AND r.lease_owner = w.worker_id)
"""

# Every counter beside what it should be. Under the lock that every counted claim shares, and with
# the runs that change it locked too, so the comparison is exact; it repairs what it reports.
LOCK_ADMISSION = "SELECT only_row FROM limits FOR UPDATE"
LOCK_RUNNING = "SELECT run_id FROM runs WHERE status = 'running' ORDER BY run_id FOR NO KEY UPDATE"
LOCK_COUNTERS = """
SELECT (SELECT count(*) FROM (SELECT FROM tenants ORDER BY tenant FOR NO KEY UPDATE) t)
     + (SELECT count(*) FROM (SELECT FROM active_total FOR NO KEY UPDATE) a)
     + (SELECT count(*) FROM (SELECT FROM pools ORDER BY pool FOR NO KEY UPDATE) p) AS locked
"""

REPAIR_TENANTS = """
WITH actual AS (
    SELECT t.tenant, t.active AS counted,
           (SELECT count(*)::int FROM runs r WHERE r.tenant = t.tenant AND r.holds_slot) AS found
    FROM tenants t
)
UPDATE tenants t SET active = actual.found
FROM actual WHERE actual.tenant = t.tenant AND actual.counted <> actual.found
RETURNING 'active runs of tenant ' || t.tenant AS what, actual.counted, actual.found
"""

REPAIR_TOTAL = """
WITH actual AS (
    SELECT a.active AS counted, (SELECT count(*)::int FROM runs WHERE holds_slot) AS found
    FROM active_total a
)
UPDATE active_total SET active = actual.found
FROM actual WHERE actual.counted <> actual.found
RETURNING 'active runs' AS what, actual.counted, actual.found
"""

REPAIR_POOLS = """
WITH actual AS (
    SELECT p.pool, p.calls AS counted,
           (SELECT count(*)::int FROM pool_calls c WHERE c.pool = p.pool) AS found
    FROM pools p
)
UPDATE pools p SET calls = actual.found
FROM actual WHERE actual.pool = p.pool AND actual.counted <> actual.found
RETURNING 'calls of pool ' || p.pool AS what, actual.counted, actual.found
"""

REPAIR_RESERVED = """
WITH actual AS (
    SELECT r.run_id, r.reserved AS counted, coalesce((
        SELECT sum(v.amount) FROM reservations v
        WHERE v.run_id = r.run_id AND v.lease_generation = r.lease_generation), 0)::bigint AS found
    FROM runs r WHERE r.status = 'running' OR r.reserved <> 0
)
UPDATE runs r SET reserved = actual.found, version = r.version + 1
FROM actual WHERE actual.run_id = r.run_id AND actual.counted <> actual.found
RETURNING 'reserved by run ' || r.run_id AS what, actual.counted, actual.found
"""

REPAIRS: tuple[LiteralString, ...] = (
    REPAIR_TENANTS,
    REPAIR_TOTAL,
    REPAIR_POOLS,
    REPAIR_RESERVED,
)


@dataclass(frozen=True)
class Drift:
    """A counter that did not match what it counts. It was set to `found`."""

    what: str
    counted: int
    found: int


@dataclass(frozen=True, kw_only=True)
class WorkerView:
    """A worker as the database knows it. `state`: alive, silent, stopped or dead."""

    worker_id: str
    host: str
    pid: int
    kinds: tuple[str, ...]
    versions: tuple[str, ...]
    concurrency: int
    state: str
    runs: int
    started_at: datetime
    heartbeat_at: datetime


@dataclass(frozen=True, kw_only=True)
class ReadyKind:
    """Pending runs of one kind. `served` is False when no live worker takes that kind."""

    kind: str
    runs: int
    oldest: datetime
    served: bool


async def suspend(database: Database, run_id: str) -> RunView:
    """Take a run out: at once, or at its owner's next safe boundary. Raises `RunNotFound`, and
    `BadInput` if it has ended."""
    return await _ask(database, SUSPEND, run_id, "suspended", already="suspended")


async def resume(database: Database, run_id: str) -> RunView:
    """Put a suspended run back, or withdraw the request. Raises `RunNotFound`, `BadInput`."""
    return await _ask(database, RESUME, run_id, "resumed", already="")


async def _ask(
    database: Database, statement: LiteralString, run_id: str, what: str, *, already: str
) -> RunView:
    changed = await persistently(lambda: database.fetch(statement, run_id=run_id))
    view = await _view(database, run_id)
    if not changed and view.state != already:
        raise BadInput(f"run {run_id!r} is {view.state}: it cannot be {what}")
    return view


async def redrive(database: Database, run_id: str, *, new_run_id: str | None = None) -> RunView:
    """Start the content of a failed or cancelled run again, as a new run with a fresh journal.

    Raises `RunNotFound`, and `BadInput` if it has not failed or the new id is taken.
    """
    new = new_run_id or f"{run_id}.{uuid.uuid4().hex[:8]}"
    if await persistently(lambda: database.fetch(REDRIVE, run_id=run_id, new_run_id=new)):
        return await _view(database, new)
    view = await _view(database, run_id)
    raise BadInput(
        f"run {run_id!r} is {view.state}: only a failed or cancelled run is started again, "
        "under an id that is free"
    )


async def list_workers(database: Database, *, everyone: bool = False) -> list[WorkerView]:
    """The workers that are at work, newest first; with `everyone`, also those that ended."""
    silent = timedelta(seconds=database.settings.lease_ttl)
    rows = await persistently(
        lambda: database.fetch(LIST_WORKERS, silent_after=silent, all=everyone)
    )
    return [
        WorkerView(
            worker_id=row["worker_id"],
            host=row["host"],
            pid=row["pid"],
            kinds=tuple(row["kinds"]),
            versions=tuple(row["versions"]),
            concurrency=row["concurrency"],
            state=row["state"],
            runs=row["runs"],
            started_at=row["started_at"],
            heartbeat_at=row["heartbeat_at"],
        )
        for row in rows
    ]


async def list_ready(database: Database) -> list[ReadyKind]:
    """Which runs are ready, by kind; those that nobody serves first."""
    rows = await persistently(lambda: database.fetch(LIST_READY))
    return [ReadyKind(**row) for row in rows]


async def prune(database: Database, *, older_than: timedelta) -> int:
    """Delete runs that ended longer ago, with everything about them. Returns how many."""
    pruned = 0
    while rows := await persistently(lambda: database.fetch(PRUNE, older_than=older_than)):
        pruned += len(rows)
    await persistently(lambda: database.fetch(PRUNE_WORKERS, older_than=older_than))
    return pruned


async def reconcile(database: Database) -> list[Drift]:
    """Recount slots and reservations, repair what does not match, and report it.

    Nothing found is what should come out. Blocks claims for as long as it counts.
    """

    async def recount() -> list[Drift]:
        found: list[Drift] = []
        async with database.transaction() as connection:
            for lock in (LOCK_ADMISSION, LOCK_RUNNING, LOCK_COUNTERS):
                await connection.execute(lock)
            for repair in REPAIRS:
                cursor = await connection.execute(repair)
                found += [Drift(**row) for row in await cursor.fetchall()]
        return found

    return await persistently(recount)


async def _view(database: Database, run_id: str) -> RunView:
    rows: list[Row] = await persistently(lambda: database.fetch(views.GET_RUN, run_id=run_id))
    if not rows:
        raise RunNotFound(run_id)
    return views.run_view(rows[0])
