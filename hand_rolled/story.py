"""The story's own SQL, kept runnable: what most people would write first.

The claim is atomic and right: no two workers get the same run. It is kept to be compared with, by
`two-workers explain claim`. What it lacks, and where to find it:

- an index that serves both halves of its OR (`claim.py`, `reclaim.py`);
- a generation, so a worker that was paused past its lease may still write (`journal.py`);
- in the heartbeat, what tells this claim from a later one by the same name (`heartbeat.py`).
"""

from __future__ import annotations

# The race: two workers can read the same row before either updates it.
STORY_SELECT = """
SELECT run_id FROM runs WHERE status = 'pending' ORDER BY created_at LIMIT 1
"""

STORY_UPDATE = """
UPDATE runs
SET status = 'running', lease_owner = %(worker)s, lease_expires_at = now() + %(ttl)s
WHERE run_id = %(run_id)s
"""

# The atomic claim: selecting and claiming are one statement.
STORY_CLAIM = """
WITH candidate AS (
    SELECT run_id
    FROM runs
    WHERE
        status = 'pending'
        OR (
            status = 'running'
            AND lease_expires_at < now()
        )
    ORDER BY created_at
    FOR UPDATE SKIP LOCKED
    LIMIT 1
)
UPDATE runs
SET
    status = 'running',
    lease_owner = %(worker)s,
    lease_expires_at = now() + %(ttl)s
WHERE run_id IN (SELECT run_id FROM candidate)
RETURNING *
"""

STORY_HEARTBEAT = """
UPDATE runs
SET
    heartbeat_at = now(),
    lease_expires_at = now() + %(ttl)s
WHERE
    run_id = %(run_id)s
    AND lease_owner = %(worker)s
"""
