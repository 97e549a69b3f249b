"""Backpressure in the database: exact at any number of claimers, leaking nothing when one dies.

Admission (active runs, in all and per tenant) is part of the claim: see `claim.py`. Here are the
slots of pools, for calls in flight across all workers; budgets, reserved before a call and settled
after it; and the change of limits at run time.

What a dead worker held comes back by itself: runs with their slots by the reclaim, calls and
reservations by `SWEEP`, which deletes those whose generation is no longer in force; calls as soon
as the lease has ended.
"""

from __future__ import annotations

from dataclasses import dataclass

from hand_rolled.database import Connection, Database
from hand_rolled.entries import Place
from hand_rolled.journal import Journal
from hand_rolled.lease import LeaseLost
from two_workers.errors import BudgetExceeded
from two_workers.protocol import Limits

# A slot for one call, if the pool has one. Waiting for it is not lack of progress, so the question
# itself counts as progress. The counter is tested under the lock that raises it.
TAKE_SLOT = """
WITH held AS (
    UPDATE runs r SET progress_at = clock_timestamp(), version = r.version + 1
    WHERE r.run_id = %(run_id)s AND r.lease_generation = %(generation)s
      AND r.lease_owner = %(worker)s
      AND NOT EXISTS (SELECT FROM pool_calls c
                      WHERE c.run_id = r.run_id AND c.lease_generation = r.lease_generation
                        AND c.batch = %(batch)s AND c.position = %(position)s)
    RETURNING r.run_id
), free AS MATERIALIZED (
    SELECT p.pool FROM pools p
    WHERE p.pool = %(pool)s AND p.calls < p.max_calls AND EXISTS (SELECT FROM held)
    FOR NO KEY UPDATE
), granted AS (
    INSERT INTO pool_calls (run_id, lease_generation, batch, position, pool)
    SELECT held.run_id, %(generation)s, %(batch)s, %(position)s, free.pool FROM held, free
    RETURNING pool
), counted AS (
    UPDATE pools p SET calls = p.calls + 1 FROM granted WHERE p.pool = granted.pool
)
SELECT EXISTS (SELECT FROM held) AS held,
       EXISTS (SELECT FROM granted)
       OR EXISTS (SELECT FROM pool_calls c
                  WHERE c.run_id = %(run_id)s AND c.lease_generation = %(generation)s
                    AND c.batch = %(batch)s AND c.position = %(position)s) AS granted,
       EXISTS (SELECT FROM pools p
               WHERE p.pool = %(pool)s AND p.max_calls IS NOT NULL) AS limited
"""

# The worst case of one call, put aside if it still fits the budget.
RESERVE = """
WITH held AS (
    UPDATE runs r SET reserved = r.reserved + %(amount)s, version = r.version + 1
    WHERE r.run_id = %(run_id)s AND r.lease_generation = %(generation)s
      AND r.lease_owner = %(worker)s
      AND r.cost + r.reserved + %(amount)s <= r.budget
      AND NOT EXISTS (SELECT FROM reservations v
                      WHERE v.run_id = r.run_id AND v.lease_generation = r.lease_generation
                        AND v.batch = %(batch)s AND v.position = %(position)s
                        AND v.attempt = %(attempt)s)
    RETURNING r.run_id
)
INSERT INTO reservations (run_id, lease_generation, batch, position, attempt, amount)
SELECT run_id, %(generation)s, %(batch)s, %(position)s, %(attempt)s, %(amount)s FROM held
RETURNING amount
"""

# Why nothing was put aside.
RESERVE_READ_BACK = """
SELECT r.cost, r.reserved, r.budget,
       r.lease_generation = %(generation)s AND r.lease_owner = %(worker)s AS ours,
       EXISTS (SELECT FROM reservations v
               WHERE v.run_id = r.run_id AND v.lease_generation = %(generation)s
                 AND v.batch = %(batch)s AND v.position = %(position)s
                 AND v.attempt = %(attempt)s) AS done
FROM runs r WHERE r.run_id = %(run_id)s
"""

# Calls and reservations of generations that are over. A generation never comes back, so what looks
# stale in this statement's snapshot is stale for good.
#
# A lease that has ended holds no slot either, though nobody has taken its run over yet: all those
# who could may themselves be full of runs that wait for this very slot. Its owner has stopped
# trusting itself before (lease_margin).
SWEEP = """
WITH stale AS (
    DELETE FROM pool_calls c
    WHERE NOT EXISTS (SELECT FROM runs r
                      WHERE r.run_id = c.run_id AND r.lease_generation = c.lease_generation
                        AND r.status = 'running'
                        AND r.lease_expires_at > statement_timestamp())
    RETURNING c.pool
), counted AS (
    UPDATE pools p SET calls = p.calls - freed.calls
    FROM (SELECT pool, count(*) AS calls FROM stale GROUP BY pool) freed
    WHERE p.pool = freed.pool
), forgotten AS (
    DELETE FROM reservations v
    WHERE NOT EXISTS (SELECT FROM runs r
                      WHERE r.run_id = v.run_id AND r.lease_generation = v.lease_generation
                        AND r.status = 'running')
    RETURNING v.run_id
)
SELECT (SELECT count(*) FROM stale) AS calls, (SELECT count(*) FROM forgotten) AS reservations
"""

# Claims within limits share this row: none is in flight while it is locked, nor does a worker
# register meanwhile.
LOCK_LIMITS = "SELECT counted FROM limits FOR UPDATE"

SET_LIMITS = """
UPDATE limits SET max_active = %(max_active)s, max_active_per_tenant = %(per_tenant)s,
                  counted = %(counted)s
"""

# All other claims look at their worker's row only. Changing it waits for the claim in flight, and
# the next one waits for this change.
TELL_WORKERS = "UPDATE workers SET counted = %(counted)s WHERE counted <> %(counted)s"

CLEAR_TENANTS = """
UPDATE tenants SET max_active = NULL
WHERE max_active IS NOT NULL AND NOT (tenant = ANY (%(tenants)s::text[]))
"""

SET_TENANTS = """
INSERT INTO tenants (tenant, max_active)
SELECT * FROM unnest(%(tenants)s::text[], %(maxima)s::int[]) ORDER BY 1
ON CONFLICT (tenant) DO UPDATE SET max_active = excluded.max_active
"""

# A pool's row stays when its limit goes: calls in flight under it still have to be counted down.
CLEAR_POOLS = """
UPDATE pools SET max_calls = NULL
WHERE max_calls IS NOT NULL AND NOT (pool = ANY (%(pools)s::text[]))
"""

SET_POOLS = """
INSERT INTO pools (pool, max_calls)
SELECT * FROM unnest(%(pools)s::text[], %(maxima)s::int[]) ORDER BY 1
ON CONFLICT (pool) DO UPDATE SET max_calls = excluded.max_calls
"""

# Runs that were claimed while nothing was counted are counted from now on.
COUNT_RUNNING = """
WITH uncounted AS MATERIALIZED (
    SELECT run_id FROM runs WHERE status = 'running' AND NOT holds_slot
    ORDER BY run_id FOR NO KEY UPDATE
), marked AS (
    UPDATE runs r SET holds_slot = true, version = r.version + 1
    FROM uncounted WHERE r.run_id = uncounted.run_id
    RETURNING r.tenant
), counted AS (
    UPDATE tenants t SET active = t.active + mine.runs
    FROM (SELECT tenant, count(*) AS runs FROM marked GROUP BY tenant) mine
    WHERE t.tenant = mine.tenant
    RETURNING mine.runs
)
UPDATE active_total SET active = active + (SELECT sum(runs) FROM counted)
WHERE (SELECT count(*) FROM counted) > 0
"""

READ_LIMITS = """
SELECT max_active, max_active_per_tenant,
       (SELECT coalesce(json_object_agg(tenant, max_active), '{}') FROM tenants
        WHERE max_active IS NOT NULL) AS tenants,
       (SELECT coalesce(json_object_agg(pool, max_calls), '{}') FROM pools
        WHERE max_calls IS NOT NULL) AS pools
FROM limits
"""


@dataclass(frozen=True)
class Slots:
    """Slots of pools and reservations of budgets, for the calls of one run."""

    journal: Journal
    budget: int | None

    async def try_take(self, place: Place, pool: str) -> bool:
        """True if the call may begin: a slot is ours, or the pool has no limit."""
        rows = await self.journal.patiently(
            TAKE_SLOT, batch=place.batch, position=place.position, pool=pool
        )
        if not rows[0]["held"] and not rows[0]["granted"]:
            raise LeaseLost(self.journal.lease, "its slot was refused")
        return rows[0]["granted"] or not rows[0]["limited"]

    async def try_reserve(self, place: Place, attempt: int, amount: int) -> bool:
        """True if `amount` micro-dollars are put aside; False while other calls of the run are
        under way: they may turn out cheaper, and are paid for, so their results are waited for.
        Raises `BudgetExceeded` if it cannot fit any more."""
        if self.budget is None or amount == 0:
            return True
        values = {"batch": place.batch, "position": place.position, "attempt": attempt}
        if await self.journal.patiently(RESERVE, **values, amount=amount):
            return True
        [found] = await self.journal.patiently(RESERVE_READ_BACK, **values)
        if not found["ours"]:
            raise LeaseLost(self.journal.lease, "its reservation was refused")
        if found["done"]:
            return True
        if found["reserved"] == 0 and found["cost"] + amount > self.budget:
            raise BudgetExceeded(budget=self.budget, spent=found["cost"], worst_case=amount)
        return False


async def sweep(database: Database) -> int:
    """Free what dead owners still held. Returns how much that was."""
    row = await database.fetch_one(SWEEP)
    assert row is not None
    freed: int = row["calls"] + row["reservations"]
    return freed


async def read_limits(database: Database) -> Limits:
    """The limits in force."""
    row = await database.fetch_one(READ_LIMITS)
    return Limits.model_validate(row)


async def write_limits(database: Database, limits: Limits) -> None:
    """Replace the limits. When this returns, no claim goes by the old ones."""
    counted = (
        limits.max_active is not None
        or limits.max_active_per_tenant is not None
        or bool(limits.tenants)
    )
    async with database.transaction() as connection:
        await connection.execute(LOCK_LIMITS)
        await connection.execute(
            SET_LIMITS,
            {
                "max_active": limits.max_active,
                "per_tenant": limits.max_active_per_tenant,
                "counted": counted,
            },
        )
        await connection.execute(TELL_WORKERS, {"counted": counted})
        if counted:
            await connection.execute(COUNT_RUNNING)
        await _write_overrides(connection, limits)


async def _write_overrides(connection: Connection, limits: Limits) -> None:
    tenants, pools = dict(limits.tenants), dict(limits.pools)
    await connection.execute(CLEAR_TENANTS, {"tenants": list(tenants)})
    await connection.execute(
        SET_TENANTS, {"tenants": list(tenants), "maxima": list(tenants.values())}
    )
    await connection.execute(CLEAR_POOLS, {"pools": list(pools)})
    await connection.execute(SET_POOLS, {"pools": list(pools), "maxima": list(pools.values())})
