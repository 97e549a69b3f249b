"""The story's table: its statements, word for word, and a journal beside them.

The only change to the story's SQL is that its 60 seconds are a setting.
"""

from __future__ import annotations

CREATE = """
CREATE TABLE IF NOT EXISTS runs (
    run_id           text PRIMARY KEY,
    kind             text NOT NULL,
    tenant           text NOT NULL,
    payload          jsonb NOT NULL,
    created_at       timestamptz NOT NULL DEFAULT now(),
    status           text NOT NULL DEFAULT 'pending',
    lease_owner      text,
    lease_expires_at timestamptz,
    heartbeat_at     timestamptz,
    cancel_requested boolean NOT NULL DEFAULT false,
    result           jsonb,
    failure          text,
    closed_at        timestamptz
);
CREATE INDEX IF NOT EXISTS runs_to_claim ON runs (status, created_at);
CREATE TABLE IF NOT EXISTS journal (
    run_id      text NOT NULL REFERENCES runs,
    key         text NOT NULL,
    kind        text NOT NULL,
    outcome     jsonb NOT NULL,
    attempt     int NOT NULL,
    worker      text NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (run_id, key)
);
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

REQUEST_CANCEL = "UPDATE runs SET cancel_requested = true WHERE run_id = %(run_id)s"

CANCEL_REQUESTED = "SELECT cancel_requested FROM runs WHERE run_id = %(run_id)s"

READ_JOURNAL = "SELECT key, outcome FROM journal WHERE run_id = %(run_id)s"

RECORD = """
INSERT INTO journal (run_id, key, kind, outcome, attempt, worker)
VALUES (%(run_id)s, %(key)s, %(kind)s, %(outcome)s, %(attempt)s, %(worker)s)
ON CONFLICT (run_id, key) DO NOTHING
"""

FINISH = """
UPDATE runs
SET status = %(status)s, result = %(result)s, failure = %(failure)s, closed_at = now()
WHERE run_id = %(run_id)s
"""
