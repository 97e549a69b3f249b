"""Who resumes it? Answered by a PostgreSQL table.

Read in this order: `migrations/0001_runs.sql` (what a run is), `claim.py` (who gets it),
`lease.py` (until when), `heartbeat.py` (how it is kept), `reclaim.py` (how an abandoned run comes
back), `journal.py` (what the fence protects), `lifecycle.py` (how a run moves on), `handler.py`
(the driver of an agent: hold it beside `temporal_version/workflow.py`) with `replay.py`, and
`shift.py` (a worker's day).

Each of these stands without the rest: `crash.py` (a crash is not a pause), `limits.py`, `waits.py`
(sleep, signals), `progress.py`, `notify.py`, `operations.py`. `STATES.md` has the diagram,
`explain.py` the reasons, line by line.
"""

from hand_rolled.entries import WithSQL

__all__ = ["WithSQL"]
