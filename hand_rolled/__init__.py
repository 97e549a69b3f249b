"""Who resumes it? Answered by a PostgreSQL table.

Read in this order: `migrations/0001_runs.sql` (what a run is), `claim.py` (who gets it),
`lease.py` (how long), `journal.py` (what the fence protects), `lifecycle.py` (how a run moves on),
`handler.py` (the driver of an agent: hold it beside `temporal_version/workflow.py`), `worker.py`.
`STATES.md` has the diagram.
"""

from hand_rolled.journal import WithSQL

__all__ = ["WithSQL"]
