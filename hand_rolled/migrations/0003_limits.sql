-- Backpressure. Lock order everywhere: limits, workers, runs, tenants, active_total, pools.
-- (A claim locks tenants before runs, but skips locked runs, so it never waits for one.)

CREATE TABLE limits (
    only_row          boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    counted           boolean NOT NULL DEFAULT false,  -- any of the admission limits is set
    max_active        integer,
    max_active_per_tenant integer
);
INSERT INTO limits DEFAULT VALUES;

CREATE TABLE tenants (
    tenant            text PRIMARY KEY,
    max_active        integer,            -- overrides limits.max_active_per_tenant
    active            integer NOT NULL DEFAULT 0 CHECK (active >= 0),
    last_claimed_at   timestamptz NOT NULL DEFAULT to_timestamp(0)
) WITH (fillfactor = 50);

-- Apart from limits, so that counting does not disturb those who only read the limits.
CREATE TABLE active_total (
    only_row          boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    active            integer NOT NULL DEFAULT 0 CHECK (active >= 0)
) WITH (fillfactor = 10);
INSERT INTO active_total DEFAULT VALUES;

CREATE TABLE pools (
    pool              text PRIMARY KEY,
    max_calls         integer,            -- NULL: no limit at the moment
    calls             integer NOT NULL DEFAULT 0 CHECK (calls >= 0)
) WITH (fillfactor = 10);

-- A call in flight that holds a slot of a pool.
CREATE TABLE pool_calls (
    run_id            text NOT NULL,
    lease_generation  bigint NOT NULL,
    batch             integer NOT NULL,
    position          integer NOT NULL,
    pool              text NOT NULL,
    granted_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (run_id, lease_generation, batch, position)
);

-- Worst-case money of a call in flight; their sum per run is runs.reserved.
CREATE TABLE reservations (
    run_id            text NOT NULL,
    lease_generation  bigint NOT NULL,
    batch             integer NOT NULL,
    position          integer NOT NULL,
    attempt           integer NOT NULL,
    amount            bigint NOT NULL,
    PRIMARY KEY (run_id, lease_generation, batch, position, attempt)
);
