"""Who gets a run: claim, reclaim, and what brings a run back to the queue.

Claim and reclaim are two statements, not the story's one with an OR: an OR over two conditions
makes PostgreSQL sort the whole backlog at every claim, and puts long-running rows at the head of
it. `explain.py` shows both plans. Either raises the generation by exactly one, in the same
statement that chooses the run, so no two owners ever hold the same generation.

Traps that each statement avoids:

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
    -- A worker that was declared dead takes nothing; the lock makes it wait for that decision.
    SELECT worker_id FROM workers
    WHERE worker_id = %(worker)s AND dead_at IS NULL
    FOR SHARE
), gate AS MATERIALIZED (
    -- Limits that are switched on meanwhile wait for this claim, and the next one counts.
    SELECT only_row FROM limits WHERE NOT counted FOR SHARE
), head AS MATERIALIZED (
    SELECT r.run_id
    FROM runs r
    WHERE r.status = 'pending' AND r.kind = %(kind)s AND r.suspect = %(suspect)s
      AND (r.code_version IS NULL OR r.code_version = %(code)s)
      AND NOT (%(worker)s = ANY (r.unfit_workers))
      AND EXISTS (SELECT FROM me) AND EXISTS (SELECT FROM gate)
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
WITH me AS MATERIALIZED (
    SELECT worker_id FROM workers
    WHERE worker_id = %(worker)s AND dead_at IS NULL
    FOR SHARE
), gate AS MATERIALIZED (
    SELECT max_active, max_active_per_tenant FROM limits WHERE counted FOR SHARE
), turn AS MATERIALIZED (
    SELECT t.tenant,
           coalesce(t.max_active, gate.max_active_per_tenant, 2147483647) - t.active AS room
    FROM tenants t CROSS JOIN gate
    -- After the lock PostgreSQL checks this again on the newest version of the row: that is what
    -- makes the count exact. A count(*) over runs would still see the old snapshot.
    WHERE t.active < coalesce(t.max_active, gate.max_active_per_tenant, 2147483647)
      AND EXISTS (SELECT FROM me)
      AND EXISTS (
        SELECT FROM runs r
        WHERE r.tenant = t.tenant
          AND r.status = 'pending' AND r.kind = %(kind)s AND r.suspect = %(suspect)s
          AND (r.code_version IS NULL OR r.code_version = %(code)s)
          AND NOT (%(worker)s = ANY (r.unfit_workers)))
    ORDER BY t.last_claimed_at, t.tenant
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

# running → running under a new owner, or to where a request or the blame sends the orphan.
# Level-triggered: it looks at every poll, because a claim that was in flight when its worker died
# may commit after any sweep. Limits do not gate it: a dead worker's run must not block its own
# recovery. It keeps the slot of the run it takes over.
RECLAIM = """
WITH me AS MATERIALIZED (
    SELECT worker_id FROM workers
    WHERE worker_id = %(worker)s AND dead_at IS NULL
    FOR SHARE
), orphan AS MATERIALIZED (
    SELECT r.run_id, r.tenant, r.holds_slot, r.lease_owner AS previous, found.reason, found.verdict
    FROM runs r
    LEFT JOIN workers w ON w.worker_id = r.lease_owner
    CROSS JOIN LATERAL (SELECT CASE
        WHEN w.dead_at IS NOT NULL THEN 'died'
        WHEN r.lease_expires_at > statement_timestamp() THEN 'stuck'
        -- We too had lost the server while this lease ran out: not the owner's fault.
        WHEN NOT %(in_contact)s THEN 'outage'
        ELSE 'expired' END AS reason) why
    CROSS JOIN LATERAL (SELECT why.reason, CASE
        WHEN r.cancel_requested THEN 'cancelled'
        WHEN r.suspend_requested THEN 'suspended'
        WHEN why.reason = 'stuck' AND r.takeaways + 1 >= %(max_takeaways)s THEN 'failed'
        WHEN why.reason IN ('stuck', 'outage') THEN 'running'
        WHEN r.lease_alone AND r.solo_crashes + 1 >= %(max_crashes)s THEN 'failed'
        WHEN r.crashes + 1 >= %(suspect_after)s THEN 'scheduled'
        ELSE 'running' END AS verdict) found
    WHERE r.status = 'running'
      AND (w.dead_at IS NOT NULL
           OR r.lease_expires_at <= statement_timestamp()
           OR r.progress_at <= statement_timestamp() - %(progress_timeout)s::interval)
      AND NOT (r.run_id = ANY (%(known)s::text[]))
      AND EXISTS (SELECT FROM me)
      AND (found.verdict <> 'running'
           OR %(free)s > 0 AND NOT (%(worker)s = ANY (r.unfit_workers))
              AND EXISTS (SELECT FROM unnest(%(kinds)s::text[], %(codes)s::text[])
                               AS mine (kind, code)
                          WHERE mine.kind = r.kind
                            AND mine.code = coalesce(r.code_version, mine.code)))
    ORDER BY r.lease_expires_at
    LIMIT greatest(%(free)s, 1)
    FOR NO KEY UPDATE OF r SKIP LOCKED
), taken AS (
    UPDATE runs r
    SET status = o.verdict,
        lease_generation = r.lease_generation + 1,
        lease_owner = CASE o.verdict WHEN 'running' THEN %(worker)s END,
        lease_expires_at = CASE o.verdict WHEN 'running' THEN clock_timestamp() + %(ttl)s END,
        heartbeat_at = clock_timestamp(),
        progress_at = clock_timestamp(),
        lease_alone = false,
        holds_slot = r.holds_slot AND o.verdict = 'running',
        suspect = r.suspect OR o.verdict = 'scheduled',
        suspend_requested = false,
        -- Twice as long after each crash, plus up to half of that at random.
        run_after = CASE o.verdict WHEN 'scheduled' THEN clock_timestamp()
            + %(crash_backoff)s * least(64, power(2, r.crashes)) * (1 + random() / 2) END,
        crashes = r.crashes + (o.reason IN ('died', 'expired'))::int,
        solo_crashes = r.solo_crashes + (o.reason IN ('died', 'expired') AND r.lease_alone)::int,
        takeaways = r.takeaways + (o.reason = 'stuck')::int,
        outages = r.outages + (o.reason = 'outage')::int,
        -- Nobody knows what became of calls that were under way: their worst case is charged.
        cost = r.cost + r.reserved,
        reserved = 0,
        closed_at = CASE WHEN o.verdict IN ('cancelled', 'failed') THEN clock_timestamp() END,
        failure = CASE WHEN o.verdict = 'failed' AND o.reason = 'stuck'
                       THEN 'Stuck: taken away ' || r.takeaways + 1 || ' times for lack of progress'
                       WHEN o.verdict = 'failed'
                       THEN 'Poison: its worker died ' || r.solo_crashes + 1
                            || ' times while it ran alone' END,
        version = r.version + 1
    FROM orphan o
    WHERE r.run_id = o.run_id
    RETURNING r.run_id, r.kind, r.payload, r.budget, r.lease_generation, r.lease_alone, r.version,
              r.status, o.previous, o.reason, o.tenant,
              o.holds_slot AND NOT r.holds_slot AS left_slot
), logged AS (
    INSERT INTO ownership (run_id, version, lease_generation, event, owner, reason)
    SELECT run_id, version, lease_generation,
           CASE status WHEN 'running' THEN 'reclaimed' ELSE 'reaped' END,
           CASE status WHEN 'running' THEN %(worker)s END,
           reason || ' under ' || previous
               || CASE status WHEN 'running' THEN '' ELSE ': ' || status END
    FROM taken
), vacated AS MATERIALIZED (
    -- In the order of their names: two reclaims that meet here must not deadlock.
    SELECT t.tenant FROM tenants t
    WHERE t.tenant IN (SELECT tenant FROM taken WHERE left_slot)
    ORDER BY t.tenant FOR NO KEY UPDATE
), counted AS (
    UPDATE tenants t SET active = t.active - freed.runs
    FROM (SELECT tenant, count(*) AS runs FROM taken WHERE left_slot GROUP BY tenant) freed
    WHERE t.tenant = freed.tenant AND t.tenant IN (SELECT tenant FROM vacated)
    RETURNING freed.runs
), summed AS (
    UPDATE active_total SET active = active - (SELECT sum(runs) FROM counted)
    WHERE (SELECT count(*) FROM counted) > 0
)
SELECT run_id, kind, payload, budget, lease_generation, lease_alone, status, previous, reason
FROM taken
"""

# running → running: a claim whose answer was lost is given to its owner again, untouched.
# Without it such a run would idle for a whole lease.
REDELIVER = """
WITH mine AS MATERIALIZED (
    SELECT r.run_id
    FROM runs r JOIN workers w ON w.worker_id = r.lease_owner
    WHERE r.status = 'running' AND r.lease_owner = %(worker)s AND w.dead_at IS NULL
      AND NOT (r.run_id = ANY (%(known)s::text[]))
    ORDER BY r.run_id
    FOR NO KEY UPDATE OF r
)
UPDATE runs r
SET lease_expires_at = clock_timestamp() + %(ttl)s, heartbeat_at = clock_timestamp(),
    progress_at = clock_timestamp(), version = r.version + 1
FROM mine
WHERE r.run_id = mine.run_id
RETURNING r.run_id, r.kind, r.payload, r.budget, r.lease_generation, r.lease_alone
"""

# scheduled, or waiting with a sleep that is over → pending
PROMOTE = """
WITH due AS MATERIALIZED (
    SELECT r.run_id
    FROM runs r
    WHERE r.status IN ('scheduled', 'waiting') AND r.run_after <= statement_timestamp()
    ORDER BY r.run_after
    LIMIT 100
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE runs r
SET status = 'pending',
    run_after = NULL,
    -- What has begun goes on first, except suspects: they queue, to know how long they wait.
    ready_at = CASE WHEN r.suspect THEN clock_timestamp() ELSE '-infinity' END,
    version = r.version + 1
FROM due
WHERE r.run_id = due.run_id
RETURNING r.run_id
"""

NEXT_DUE = """
SELECT extract(epoch FROM min(run_after) - clock_timestamp())::float8 AS seconds
FROM runs WHERE status IN ('scheduled', 'waiting')
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


@dataclass(frozen=True, kw_only=True)
class Orphan:
    """What `reclaim` did with a run whose owner was gone. `claimed` if it is ours now."""

    run_id: str
    became: str
    previous: str
    reason: str
    claimed: Claimed | None


class Claims:
    """The statements of this module for one worker."""

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

    async def reclaim(
        self, kinds: list[str], codes: list[str], *, free: int, known: list[str], in_contact: bool
    ) -> list[Orphan]:
        """Take over up to `free` orphans; end those that need no owner.

        `known` are the runs that this worker still holds; `in_contact` says that it was never out
        of contact with the database for as long as a lease.
        """
        settings = self._database.settings
        timeout = settings.progress_timeout
        rows = await self._database.fetch(
            RECLAIM,
            worker=self._worker,
            kinds=kinds,
            codes=codes,
            free=free,
            known=known,
            in_contact=in_contact,
            ttl=self._ttl,
            progress_timeout=None if timeout is None else timedelta(seconds=timeout),
            max_takeaways=settings.max_takeaways,
            max_crashes=settings.max_crashes,
            suspect_after=settings.suspect_after,
            crash_backoff=timedelta(seconds=settings.crash_backoff),
        )
        return [
            Orphan(
                run_id=row["run_id"],
                became=row["status"],
                previous=row["previous"],
                reason=row["reason"],
                claimed=Claimed.of(row) if row["status"] == "running" else None,
            )
            for row in rows
        ]

    async def redeliver(self, known: list[str]) -> list[Claimed]:
        """Runs that the database says are ours, and that we do not know of."""
        rows = await self._database.fetch(
            REDELIVER, worker=self._worker, known=known, ttl=self._ttl
        )
        return [Claimed.of(row) for row in rows]

    async def promote(self) -> int:
        """Bring due runs back to the queue. Returns how many."""
        return len(await self._database.fetch(PROMOTE))

    async def next_due(self) -> float | None:
        """Seconds until the next scheduled or sleeping run is due; negative if overdue."""
        row = await self._database.fetch_one(NEXT_DUE)
        return None if row is None else row["seconds"]
