"""Rung 4: a claim that never ends.

A permanent lock strands the work of a worker that dies: the run stands there as `running`, its
owner is gone, and no condition will ever be true again that lets another worker take it.
"""

from __future__ import annotations

from comparison.ladder.checks import ORPHAN
from comparison.ladder.rung import Rung
from comparison.ladder.settings import BOUND
from comparison.ladder.stage import Stage
from comparison.ladder.table import Form

CLAIM = """
WITH candidate AS MATERIALIZED (
    SELECT run_id
    FROM runs
    WHERE status = 'pending'
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


async def scenario(stage: Stage) -> None:
    """A worker is killed while the model answers it; another one is idle."""
    victim = await stage.worker("worker-7")
    hold = await stage.hold()
    await stage.start()
    held = await stage.held(hold)
    await stage.worker("worker-8")
    fault = await stage.strike(victim, "kill", held)
    taken = await stage.until_taken_over(fault)
    await stage.heal_and_converge(within=BOUND if taken else 0)


RUNG = Rung(
    number=4,
    title="claim without expiry",
    breaks="a worker dies and its run is stranded",
    holds="the lease ends and another worker reclaims the run",
    broken=Form(claim=(CLAIM,)),
    scenario=scenario,
    judge=ORPHAN,
)
