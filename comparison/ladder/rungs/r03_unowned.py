"""Rung 3: idempotent, but nobody owns anything.

Every write is idempotent: a step is recorded once, the run ends once, the report is right. No
check of results can see what is wrong. The ledger can: everything was done and paid for twice.
"""

from __future__ import annotations

from comparison.ladder.checks import ONE_OWNER
from comparison.ladder.rung import Rung
from comparison.ladder.stage import Stage
from comparison.ladder.table import Form

LOOK = "SELECT * FROM runs WHERE status = 'pending' ORDER BY created_at LIMIT 1"

RECORD = """
INSERT INTO journal (run_id, key, kind, outcome, attempt, worker)
VALUES (%(run_id)s, %(key)s, %(kind)s, %(outcome)s, %(attempt)s, %(worker)s)
ON CONFLICT (key) DO UPDATE SET attempt = journal.attempt
RETURNING key
"""

FINISH = """
UPDATE runs
SET status = %(status)s, result = %(result)s, failure = %(failure)s, closed_at = now()
WHERE run_id = %(run_id)s AND status = 'pending'
RETURNING run_id
"""


async def scenario(stage: Stage) -> None:
    """Two workers, two runs; both workers are in a model call before either gets its reply."""
    await stage.workers("worker-7", "worker-8")
    holds = [await stage.hold(), await stage.hold()]
    await stage.start(2)
    for hold in holds:
        await stage.held(hold)
    stage.contended += 1
    await stage.heal_and_converge()


RUNG = Rung(
    number=3,
    title="idempotent but unowned",
    breaks="the report is right and the bill is doubled",
    holds="ownership stops the duplicate work before it is paid for",
    broken=Form(claim=(LOOK,), heartbeat=None, record=RECORD, finish=FINISH),
    scenario=scenario,
    judge=ONE_OWNER,
)
