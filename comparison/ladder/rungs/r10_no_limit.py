"""Rung 10: no limit at the door.

Work arrives at twice the rate at which it can be done, and everything is let in. Every run waits
longer than the one before it, and all of it will be paid for. With a limit on what may wait, the
door refuses what could not be served in time, at once and for nothing.
"""

from __future__ import annotations

from comparison.ladder.checks import BOUNDED
from comparison.ladder.rung import Rung
from comparison.ladder.stage import Stage
from comparison.ladder.table import Form

WORKERS, WAITING = 2, 2
ARRIVALS = 40

START = """
WITH place AS (
    UPDATE limits SET waiting = waiting + 1 WHERE waiting < max_waiting RETURNING waiting
)
INSERT INTO runs (run_id, payload) SELECT %(run_id)s, %(payload)s FROM place RETURNING run_id
"""

CLAIM = """
WITH candidate AS MATERIALIZED (
    SELECT run_id, status
    FROM runs
    WHERE status = 'pending'
       OR (status = 'running' AND lease_expires_at < now())
    ORDER BY created_at
    FOR UPDATE SKIP LOCKED
    LIMIT 1
), place AS (
    UPDATE limits SET waiting = waiting - 1
    WHERE EXISTS (SELECT FROM candidate WHERE status = 'pending')
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


async def scenario(stage: Stage) -> None:
    """For each run that ends two arrive: twice the capacity, however fast the machine is."""
    await stage.set_limits(max_waiting=WAITING)
    stage.settings["workers"] = str(WORKERS)
    await stage.workers(*(f"worker-{n}" for n in range(WORKERS)))
    for arrival in range(ARRIVALS):
        await stage.until_ended(arrival // 2)
        await stage.start()
    await stage.heal_and_converge(within=60.0)


RUNG = Rung(
    number=10,
    title="no limit under overload",
    breaks="the queue's age and the bill grow for as long as work arrives",
    holds="what could not be served in time is refused at the door, for nothing",
    broken=Form(),
    fixed=Form(start=START, claim=(CLAIM,)),
    scenario=scenario,
    judge=BOUNDED,
    trials=1,
)
