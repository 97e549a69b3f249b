-- What happened inside a run.
--
-- No foreign keys to runs: each write here happens under a lock on the run's row, which proves
-- that it exists; checking it a second time would cost a third of the throughput.

-- A recorded step is never executed again.
CREATE TABLE journal (
    run_id            text NOT NULL,
    batch             integer NOT NULL,
    position          integer NOT NULL,
    kind              text NOT NULL,
    fingerprint       text NOT NULL,      -- what the agent asked for; the request itself is not kept
    outcome           json NOT NULL,
    succeeded         boolean NOT NULL,
    attempt           integer NOT NULL,
    cost              bigint NOT NULL DEFAULT 0,
    lease_generation  bigint NOT NULL,
    worker            text NOT NULL,
    recorded_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (run_id, batch, position)
);

-- What is known about a step that is not recorded yet: failed attempts, when to go on, and the
-- last checkpoint that a beat brought home.
CREATE TABLE open_steps (
    run_id            text NOT NULL,
    batch             integer NOT NULL,
    position          integer NOT NULL,
    failures          integer NOT NULL DEFAULT 0,
    deferrals         integer NOT NULL DEFAULT 0,      -- RetryLater: costs no attempt
    error             text,
    due_at            timestamptz,        -- of a retry or a sleep
    checkpoint        json,
    PRIMARY KEY (run_id, batch, position)
);

CREATE TABLE signals (
    run_id            text NOT NULL,
    signal_id         text NOT NULL,
    seq               bigint NOT NULL,    -- runs.signals after it came: dense, in order
    name              text NOT NULL,
    payload           json NOT NULL,
    received_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    taken_by          text,               -- the step "batch.position" it was delivered to
    PRIMARY KEY (run_id, signal_id),
    UNIQUE (run_id, seq)
);
CREATE INDEX signals_untaken ON signals (run_id, name, seq) WHERE taken_by IS NULL;
