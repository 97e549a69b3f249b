"""How an abandoned run becomes available again: reclaim, and what brings a run back to the queue.

An orphan is a run whose owner's lease has expired, whose owner was found dead (`crash.py`), or
which makes no progress although its owner is alive. Whoever reclaims one decides in the same
statement what becomes of it. Three things send it elsewhere than to the new owner: a request
(cancelled, suspended), and blame.

Blame. The death of a process is counted against all the runs it held, so one poison run could fail
hundreds of innocent neighbours. Therefore a crash alone fails nobody: after `suspect_after` crashes
without a recorded step in between a run becomes a suspect, which waits a little and is then claimed
only by an idle worker that takes nothing beside it. Only crashes while it ran alone count up to
`max_crashes`. The first step that it records clears it. Lost servers and takeaways for lack of
progress are counted apart.

The traps that `claim.py` names hold here too.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from hand_rolled.claim import Claimed
from hand_rolled.database import Database

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
# Without it such a run would idle for a whole lease. Only for runs that the owner has not begun:
# the generation stays, so what it began before would look like what it begins now.
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
    ready_at = CASE WHEN r.suspect THEN clock_timestamp() ELSE to_timestamp(0) END,
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
class Orphan:
    """What `reclaim` did with a run whose owner was gone. `claimed` if it is ours now."""

    run_id: str
    became: str
    previous: str
    reason: str
    claimed: Claimed | None


class Reclaims:
    """Looks after runs that nobody works on, for one worker."""

    def __init__(self, database: Database, worker: str) -> None:
        self._database = database
        self._worker = worker
        self._ttl = timedelta(seconds=database.settings.lease_ttl)

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
        """Runs that the database calls ours, but for those `known`, which we have begun."""
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
