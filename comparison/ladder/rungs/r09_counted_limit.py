"""Rung 9: a limit that is counted.

Two workers count the running runs at the same time, both find room for one more, and both take
it. A lock on the runs does not help: they lock different runs. The count must be one row that
both have to change, so that the second finds what the first has done.
"""

from __future__ import annotations

from comparison.ladder.checks import CAP
from comparison.ladder.rung import Rung
from comparison.ladder.stage import Stage
from comparison.ladder.table import Form

COUNTED = """
WITH candidate AS MATERIALIZED (
    SELECT run_id
    FROM runs
    WHERE status = 'pending'
      AND (SELECT count(*) FROM runs WHERE status = 'running')
          < (SELECT max_active FROM limits)
    ORDER BY created_at
    FOR UPDATE SKIP LOCKED
    LIMIT 1
)
UPDATE runs
SET status = 'running',
    lease_owner = %(owner)s,
    lease_generation = lease_generation + 1,
    lease_expires_at = now() + make_interval(secs => %(lease)s),
    progress_at = now()
WHERE run_id IN (SELECT run_id FROM candidate)
RETURNING *
"""

# The slot is taken by an UPDATE: it waits for whoever changes the row, then reads it again.
# (Pending runs only: a reclaimed run keeps the slot that it has.)
LOCKED = """
WITH candidate AS MATERIALIZED (
    SELECT run_id
    FROM runs
    WHERE status = 'pending'
    ORDER BY created_at
    FOR UPDATE SKIP LOCKED
    LIMIT 1
), slot AS (
    UPDATE limits SET active = active + 1
    WHERE active < max_active AND EXISTS (SELECT FROM candidate)
    RETURNING active
)
UPDATE runs
SET status = 'running',
    lease_owner = %(owner)s,
    lease_generation = lease_generation + 1,
    lease_expires_at = now() + make_interval(secs => %(lease)s),
    progress_at = now()
FROM slot
WHERE run_id IN (SELECT run_id FROM candidate)
RETURNING runs.*
"""

FINISH = """
WITH ended AS (
    UPDATE runs
    SET status = %(status)s, result = %(result)s, failure = %(failure)s, closed_at = now()
    WHERE run_id = %(run_id)s
      AND lease_generation = %(generation)s
      AND status = 'running'
    RETURNING run_id
), slot AS (
    UPDATE limits SET active = active - 1 WHERE EXISTS (SELECT FROM ended)
)
SELECT run_id FROM ended
"""


async def scenario(stage: Stage) -> None:
    """One slot, two workers, two runs; both claims have counted before either has written."""
    await stage.set_limits(max_active=1)
    await stage.workers("worker-7", "worker-8")
    async with stage.turnstile(claims=2):
        await stage.start(2)
    await stage.heal_and_converge()


RUNG = Rung(
    number=9,
    title="counted limit",
    breaks="two claims count at the same time, and the limit is exceeded",
    holds="the second claim waits for the slot's row and finds it taken",
    broken=Form(claim=(COUNTED,), finish=FINISH),
    fixed=Form(claim=(LOCKED,), finish=FINISH),
    scenario=scenario,
    judge=CAP,
)
