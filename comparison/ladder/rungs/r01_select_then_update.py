"""Rung 1: SELECT a pending run, then UPDATE it.

Between the two statements the other worker selects the same run. Both updates succeed, one after
the other, and both workers believe that they own it: the whole investigation is paid for twice.
"""

from __future__ import annotations

from comparison.ladder.checks import ONE_OWNER
from comparison.ladder.rung import Rung
from comparison.ladder.stage import Stage
from comparison.ladder.table import Form

SELECT = """
SELECT run_id FROM runs WHERE status = 'pending' ORDER BY created_at LIMIT 1
"""

# Nothing here asks whether the run is still pending.
UPDATE = """
UPDATE runs
SET status = 'running',
    lease_owner = %(owner)s,
    lease_expires_at = now() + make_interval(secs => %(lease)s),
    progress_at = now()
WHERE run_id = %(run_id)s
RETURNING *
"""


async def scenario(stage: Stage) -> None:
    """Two workers, two runs; both claims have chosen before either has written."""
    await stage.workers("worker-7", "worker-8")
    async with stage.turnstile(claims=2):
        await stage.start(2)
    await stage.heal_and_converge()


RUNG = Rung(
    number=1,
    title="SELECT then UPDATE",
    breaks="two workers pick up the same investigation, and it is paid for twice",
    holds="selection and claim are one statement: each worker has a run of its own",
    broken=Form(claim=(SELECT, UPDATE)),
    scenario=scenario,
    judge=ONE_OWNER,
)
