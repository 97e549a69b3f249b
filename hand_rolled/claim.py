"""Who gets a run: the claim. `reclaim.py` has its other half.

Claim and reclaim are two statements, not the story's one with an OR: an OR over two conditions
makes PostgreSQL sort the whole backlog at every claim, and puts long-running rows at the head of
it. `explain.py` shows both plans. Either raises the generation by exactly one, in the same
statement that chooses the run, so no two owners ever hold the same generation.

Traps that both avoid:

- `FOR NO KEY UPDATE`, not `FOR UPDATE`: the latter collides with the lock that a foreign key takes,
  so a run would be skipped while somebody inserts a row that refers to it.
- `SKIP LOCKED` steps over runs that another worker is claiming right now, instead of waiting and
  then taking the same one. "Nothing found" therefore does not mean "nothing there".
- `AS MATERIALIZED` and a join, never `run_id IN (SELECT … LIMIT n)`: inside a nested loop
  PostgreSQL may run such a subquery once per row and claim far more than n.
- `statement_timestamp()` in conditions (stable, so an index can be used, and not frozen at BEGIN
  like `now()`), `clock_timestamp()` for what is stored. Only the database's clock is used: a
  worker whose clock is wrong does no harm.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from pydantic import JsonValue

from hand_rolled.database import Database, Row

# pending → running
CLAIM = """
WITH me AS MATERIALIZED (
    -- A worker that was declared dead takes nothing, nor does one whose claims are to be counted.
    -- The lock makes either decision wait for this claim, or this claim for it.
    SELECT worker_id FROM workers
    WHERE worker_id = %(worker)s AND dead_at IS NULL AND NOT counted
    FOR SHARE
), head AS MATERIALIZED (
    SELECT r.run_id
    FROM runs r
    WHERE r.status = 'pending' AND r.kind = %(kind)s AND r.suspect = %(suspect)s
      AND (r.code_version IS NULL OR r.code_version = %(code)s)
      AND NOT (%(worker)s = ANY (r.unfit_workers))
      AND EXISTS (SELECT FROM me)
    ORDER BY r.priority, r.ready_at, r.run_id
    LIMIT %(want)s
    FOR NO KEY UPDATE OF r SKIP LOCKED
), claimed AS (
    UPDATE runs r
    SET status = 'running',
        lease_owner = %(worker)s,
        lease_generation = r.lease_generation + 1,
        lease_expires_at = clock_timestamp() + %(ttl)s,
        heartbeat_at = clock_timestamp(),
        progress_at = clock_timestamp(),
        lease_alone = r.suspect,
        code_version = coalesce(r.code_version, %(code)s),
        run_after = NULL,
        version = r.version + 1
    FROM head
    WHERE r.run_id = head.run_id
    RETURNING r.run_id, r.kind, r.payload, r.budget, r.lease_generation, r.lease_alone, r.version
), logged AS (
    INSERT INTO ownership (run_id, version, lease_generation, event, owner)
    SELECT run_id, version, lease_generation, 'claimed', %(worker)s FROM claimed
)
SELECT run_id, kind, payload, budget, lease_generation, lease_alone FROM claimed
"""

# pending → running, exact under limits: the counters are read under the lock that changes them.
# Tenants take turns, longest unserved first, so one that floods the queue starves nobody.
CLAIM_WITHIN_LIMITS = """
WITH gate AS MATERIALIZED (
    SELECT max_active, max_active_per_tenant FROM limits WHERE counted FOR SHARE
), me AS MATERIALIZED (
    -- Asking for the gate first keeps the lock order: who changes the limits locks them first too.
    SELECT worker_id FROM workers
    WHERE worker_id = %(worker)s AND dead_at IS NULL AND EXISTS (SELECT FROM gate)
    FOR SHARE
), turn AS MATERIALIZED (
    -- Down the line until enough tenants are found: only for those is it asked whether runs wait.
    SELECT t.tenant,
           coalesce(t.max_active, gate.max_active_per_tenant, 2147483647) - t.active AS room
    FROM gate CROSS JOIN (
        SELECT tenant, last_claimed_at FROM tenants ORDER BY last_claimed_at, tenant
    ) line
    CROSS JOIN LATERAL (
        SELECT r.run_id FROM runs r
        WHERE r.tenant = line.tenant
          AND r.status = 'pending' AND r.kind = %(kind)s AND r.suspect = %(suspect)s
          AND (r.code_version IS NULL OR r.code_version = %(code)s)
          AND NOT (%(worker)s = ANY (r.unfit_workers))
        ORDER BY r.priority, r.ready_at, r.run_id
        LIMIT 1
    ) waiting
    JOIN tenants t ON t.tenant = line.tenant
    -- After the lock PostgreSQL checks this again on the newest version of the row: that is what
    -- makes the count exact. A count(*) over runs would still see the old snapshot.
    WHERE t.active < coalesce(t.max_active, gate.max_active_per_tenant, 2147483647)
      AND EXISTS (SELECT FROM me)
    ORDER BY line.last_claimed_at, line.tenant
    LIMIT %(want)s
    FOR NO KEY UPDATE OF t SKIP LOCKED
), total AS MATERIALIZED (
    -- count(*) reads the whole of `turn`, so all tenants are locked before the total.
    SELECT coalesce(gate.max_active - a.active, %(want)s) AS room
    FROM active_total a CROSS JOIN gate
    WHERE (SELECT count(*) FROM turn) > 0
    FOR NO KEY UPDATE OF a
), head AS MATERIALIZED (
    SELECT first.run_id
    FROM turn CROSS JOIN LATERAL (
        SELECT r.run_id
        FROM runs r
        WHERE r.tenant = turn.tenant
          AND r.status = 'pending' AND r.kind = %(kind)s AND r.suspect = %(suspect)s
          AND (r.code_version IS NULL OR r.code_version = %(code)s)
          AND NOT (%(worker)s = ANY (r.unfit_workers))
        ORDER BY r.priority, r.ready_at, r.run_id
        LIMIT least(turn.room, greatest(1, %(want)s / (SELECT count(*) FROM turn)))
        FOR NO KEY UPDATE OF r SKIP LOCKED
    ) first
    LIMIT (SELECT greatest(0, least(room, %(want)s)) FROM total)
), claimed AS (
    UPDATE runs r
    SET status = 'running',
        lease_owner = %(worker)s,
        lease_generation = r.lease_generation + 1,
        lease_expires_at = clock_timestamp() + %(ttl)s,
        heartbeat_at = clock_timestamp(),
        progress_at = clock_timestamp(),
        lease_alone = r.suspect,
        code_version = coalesce(r.code_version, %(code)s),
        run_after = NULL,
        holds_slot = true,
        version = r.version + 1
    FROM head
    WHERE r.run_id = head.run_id
    RETURNING r.run_id, r.kind, r.payload, r.budget, r.lease_generation, r.lease_alone, r.version,
              r.tenant
), logged AS (
    INSERT INTO ownership (run_id, version, lease_generation, event, owner)
    SELECT run_id, version, lease_generation, 'claimed', %(worker)s FROM claimed
), counted AS (
    UPDATE tenants t
    SET active = t.active + taken.runs, last_claimed_at = clock_timestamp()
    FROM (SELECT tenant, count(*) AS runs FROM claimed GROUP BY tenant) taken
    WHERE t.tenant = taken.tenant
), summed AS (
    UPDATE active_total SET active = active + (SELECT count(*) FROM claimed)
    WHERE (SELECT count(*) FROM claimed) > 0
)
SELECT run_id, kind, payload, budget, lease_generation, lease_alone FROM claimed
"""

# After an empty claim: which of the two claims is the right one, and is it worth another look?
LOOK = """
SELECT counted,
       EXISTS (SELECT FROM runs r
               WHERE r.status = 'pending' AND r.kind = %(kind)s AND r.suspect = %(suspect)s
                 AND (r.code_version IS NULL OR r.code_version = %(code)s)
                 AND NOT (%(worker)s = ANY (r.unfit_workers))) AS more
FROM limits
"""


# Suspects are claimed by idle workers only, and in a busy fleet nobody is ever idle. So once a
# suspect has waited for as long as a lease, one worker, the oldest, takes nothing new until it is.
MAKE_ROOM = """
SELECT EXISTS (SELECT FROM runs r
               WHERE r.status = 'pending' AND r.suspect AND r.kind = ANY (%(kinds)s::text[])
                 AND NOT (%(worker)s = ANY (r.unfit_workers))
                 AND r.ready_at < statement_timestamp() - %(ttl)s)
       AND %(worker)s = (SELECT w.worker_id FROM workers w
                         WHERE w.dead_at IS NULL AND w.stopped_at IS NULL
                           AND w.kinds && %(kinds)s::text[]
                           AND w.heartbeat_at > statement_timestamp() - %(ttl)s
                         ORDER BY w.number LIMIT 1) AS ours
"""


@dataclass(frozen=True, kw_only=True)
class Claimed:
    """A run that this worker owns now, under `generation`."""

    run_id: str
    kind: str
    payload: JsonValue
    budget: int | None
    generation: int
    alone: bool

    @classmethod
    def of(cls, row: Row) -> Claimed:
        return cls(
            run_id=row["run_id"],
            kind=row["kind"],
            payload=row["payload"],
            budget=row["budget"],
            generation=row["lease_generation"],
            alone=row["lease_alone"],
        )


class Claims:
    """Claims pending runs for one worker."""

    def __init__(self, database: Database, worker: str) -> None:
        self._database = database
        self._worker = worker
        self._ttl = timedelta(seconds=database.settings.lease_ttl)
        self._counted = False

    async def claim(
        self, kind: str, code: str, *, want: int, suspect: bool = False
    ) -> list[Claimed]:
        """Up to `want` runs of one kind, best priority first."""
        mine = {"worker": self._worker, "kind": kind, "code": code, "suspect": suspect}
        for _ in range(4):
            statement = CLAIM_WITHIN_LIMITS if self._counted else CLAIM
            rows = await self._database.fetch(statement, **mine, want=want, ttl=self._ttl)
            if rows:
                return [Claimed.of(row) for row in rows]
            look = await self._database.fetch_one(LOOK, **mine)
            assert look is not None  # the one row of limits
            if look["counted"] == self._counted and not look["more"]:
                break
            self._counted = look["counted"]
        return []

    async def must_make_room(self, kinds: list[str]) -> bool:
        """True if this worker is to become idle, for a suspect that has waited too long."""
        row = await self._database.fetch_one(
            MAKE_ROOM, worker=self._worker, kinds=kinds, ttl=self._ttl
        )
        return row is not None and bool(row["ours"])
