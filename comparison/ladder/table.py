"""A small engine that is sound: one table, a journal, and four statements.

Every rung of the ladder is this engine with one idea taken out. So each rung's file shows nothing
but the statement that is wrong, and this one shows what it should have been.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

CREATE = """
CREATE TABLE runs (
    run_id           text PRIMARY KEY,
    payload          jsonb NOT NULL,
    created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    status           text NOT NULL DEFAULT 'pending',
    lease_owner      text,
    lease_expires_at timestamptz,
    lease_generation bigint NOT NULL DEFAULT 17,  -- the story's run was at its 18th when we came
    heartbeat_at     timestamptz,
    progress_at      timestamptz,
    cancel_requested boolean NOT NULL DEFAULT false,
    result           jsonb,
    failure          text,
    closed_at        timestamptz
);
CREATE TABLE journal (
    run_id           text NOT NULL REFERENCES runs,
    key              text PRIMARY KEY,
    kind             text NOT NULL,
    outcome          jsonb NOT NULL,
    attempt          int NOT NULL,
    worker           text NOT NULL,
    recorded_at      timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE limits (max_active int, active int NOT NULL, max_waiting int, waiting int NOT NULL);
INSERT INTO limits VALUES (NULL, 0, NULL, 0);
"""

START = """
INSERT INTO runs (run_id, payload) VALUES (%(run_id)s, %(payload)s) RETURNING run_id
"""

CLAIM = """
WITH candidate AS MATERIALIZED (
    SELECT run_id
    FROM runs
    WHERE status = 'pending'
       OR (status = 'running' AND (
               lease_expires_at < now()
            OR progress_at < now() - make_interval(secs => %(patience)s)))
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

HEARTBEAT = """
UPDATE runs
SET heartbeat_at = now(),
    lease_expires_at = now() + make_interval(secs => %(lease)s)
WHERE run_id = %(run_id)s
  AND lease_generation = %(generation)s
  AND status = 'running'
RETURNING run_id
"""

RECORD = """
WITH owned AS (
    UPDATE runs SET progress_at = now()
    WHERE run_id = %(run_id)s
      AND lease_generation = %(generation)s
      AND status = 'running'
    RETURNING run_id
)
INSERT INTO journal (run_id, key, kind, outcome, attempt, worker)
SELECT run_id, %(key)s, %(kind)s, %(outcome)s, %(attempt)s, %(worker)s FROM owned
ON CONFLICT (key) DO UPDATE SET attempt = journal.attempt  -- the first stays; a row says "yours"
RETURNING key
"""

FINISH = """
UPDATE runs
SET status = CASE WHEN cancel_requested THEN 'cancelled' ELSE %(status)s END,
    result = %(result)s, failure = %(failure)s, closed_at = now()
WHERE run_id = %(run_id)s
  AND lease_generation = %(generation)s
  AND status = 'running'
RETURNING run_id
"""

CANCEL = "UPDATE runs SET cancel_requested = true WHERE run_id = %(run_id)s RETURNING run_id"

CANCEL_REQUESTED = "SELECT cancel_requested FROM runs WHERE run_id = %(run_id)s"

READ_JOURNAL = "SELECT key, outcome FROM journal WHERE run_id = %(run_id)s"


@dataclass(frozen=True)
class Form:
    """One form of the engine: its statements. Left alone, they are the sound ones.

    `claim` is run statement by statement, each with the row of the one before. A `heartbeat`,
    `record` or `finish` that returns no row says that the lease is lost. Without a `heartbeat`
    nobody beats; without a `cancel` an operator can only kill the process. `patience` is the time
    in seconds without a recorded step after which a run is taken away from a beating owner.
    """

    start: str = START
    claim: tuple[str, ...] = (CLAIM,)
    heartbeat: str | None = HEARTBEAT
    record: str = RECORD
    finish: str = FINISH
    cancel: str | None = CANCEL
    patience: float = 3600.0


SOUND = Form()

FORM_VARIABLE = "LADDER_FORM"
"""The environment variable in which a worker process finds its form."""


def dump_form(form: Form) -> str:
    """A form as JSON, for a worker process."""
    return json.dumps(asdict(form))


def load_form(text: str) -> Form:
    """The opposite of `dump_form`."""
    fields = json.loads(text)
    return Form(**{**fields, "claim": tuple(fields["claim"])})
