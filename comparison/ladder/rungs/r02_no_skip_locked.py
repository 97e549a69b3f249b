"""Rung 2: one atomic statement, but it locks nothing while it selects.

An UPDATE over a subselect looks atomic. The second worker's subselect has found the same run; its
UPDATE *waits* for the first to commit, then looks only at its own condition, which is still true
(the run has that id), and takes the same work. FOR UPDATE in the subselect makes it look again and
take the next run, but still only after it has waited: all claims queue up behind one another.
SKIP LOCKED lets it pass by at once.
"""

from __future__ import annotations

from comparison.ladder.checks import ONE_OWNER
from comparison.ladder.rung import Rung
from comparison.ladder.rungs.r01_select_then_update import scenario
from comparison.ladder.table import Form

CLAIM = """
UPDATE runs
SET status = 'running',
    lease_owner = %(owner)s,
    lease_expires_at = now() + make_interval(secs => %(lease)s),
    progress_at = now()
WHERE run_id = (
    SELECT run_id FROM runs WHERE status = 'pending' ORDER BY created_at LIMIT 1
)
RETURNING *
"""

RUNG = Rung(
    number=2,
    title="atomic claim without SKIP LOCKED",
    breaks="the second worker waits, then takes the same work",
    holds="the second worker skips the locked run and takes the next",
    broken=Form(claim=(CLAIM,)),
    scenario=scenario,
    judge=ONE_OWNER,
)
