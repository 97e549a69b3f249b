"""The story's own SQL: its claim, its heartbeat and its cancel flag, and the tables they need.

The three statements are the story's, word for word but for its placeholders, which have names
here, and its 60 seconds, which are one of them. Of its table the story shows the columns that they
speak of, and it begins where "checkpointing made the work resumable": `journal` is that.
"""

from __future__ import annotations

CREATE = """
CREATE TABLE IF NOT EXISTS runs (
    run_id           text PRIMARY KEY,
    task             jsonb NOT NULL,
    created_at       timestamptz NOT NULL DEFAULT now(),
    status           text NOT NULL DEFAULT 'pending',
    lease_owner      text,
    lease_expires_at timestamptz,
    heartbeat_at     timestamptz,
    cancel_requested boolean NOT NULL DEFAULT false,
    result           jsonb,  -- of a run that failed: its error
    closed_at        timestamptz
);
CREATE INDEX IF NOT EXISTS runs_to_claim ON runs (status, created_at);
CREATE TABLE IF NOT EXISTS journal (
    run_id           text NOT NULL REFERENCES runs,
    key              text NOT NULL,
    outcome          jsonb NOT NULL,
    recorded_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (run_id, key)
);
"""

START = """
INSERT INTO runs (run_id, task) VALUES (%(run_id)s, %(task)s) ON CONFLICT (run_id) DO NOTHING
"""

CLAIM = """
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
    lease_expires_at = now() + make_interval(secs => %(lease)s)
WHERE run_id IN (SELECT run_id FROM candidate)
RETURNING *
"""

HEARTBEAT = """
UPDATE runs
SET
    heartbeat_at = now(),
    lease_expires_at = now() + make_interval(secs => %(lease)s)
WHERE
    run_id = %(run_id)s
    AND lease_owner = %(worker)s
"""

CANCEL = """
UPDATE runs
SET cancel_requested = true
WHERE run_id = %(run_id)s
"""
