-- A run: who may work on it, until when, and what became of it.
--
-- The columns of the story keep their names: run_id, status, lease_owner, lease_expires_at,
-- heartbeat_at, lease_generation, cancel_requested.
--
-- json, not jsonb, for what apps bring: jsonb refuses \u0000 and lone surrogates, which a model's
-- reply may well contain, and we never look inside.
--
-- fillfactor 50 leaves room on each page for the next version of a row. Together with the rule
-- that no index mentions a column of the lease, that makes heartbeats HOT: no index is touched.

CREATE TABLE runs (
    run_id            text PRIMARY KEY,
    kind              text NOT NULL,
    tenant            text NOT NULL,
    priority          smallint NOT NULL,
    payload           json NOT NULL,
    budget            bigint,
    created_at        timestamptz NOT NULL DEFAULT clock_timestamp(),

    status            text NOT NULL DEFAULT 'pending' CHECK (status IN
        ('pending', 'scheduled', 'waiting', 'suspended', 'running',
         'succeeded', 'failed', 'cancelled')),
    ready_at          timestamptz NOT NULL DEFAULT clock_timestamp(),  -- its place in the queue
    run_after         timestamptz,        -- when a scheduled or sleeping run is due
    closed_at         timestamptz,
    result            json,
    failure           text,

    -- The lease. Set exactly while the run is running.
    lease_owner       text,
    lease_expires_at  timestamptz,
    heartbeat_at      timestamptz,        -- its worker appears alive
    progress_at       timestamptz,        -- its work went on: another thing, see STATES.md
    lease_alone       boolean NOT NULL DEFAULT false,  -- owner promised to run nothing beside it
    -- The fence. Rises by one with every claim and takeover, never falls, outlives the lease.
    lease_generation  bigint NOT NULL DEFAULT 0,

    -- Requests to the owner, seen at its next heartbeat or push.
    cancel_requested  boolean NOT NULL DEFAULT false,
    cancel_reason     text NOT NULL DEFAULT '',
    suspend_requested boolean NOT NULL DEFAULT false,
    signals           bigint NOT NULL DEFAULT 0,       -- how many came so far

    -- Which code may work on it.
    code_version      text,               -- of the app that claimed it first
    unfit_workers     text[] NOT NULL DEFAULT '{}',    -- whose replay did not match
    mismatch          text,

    -- Why it changed hands: counted apart, so that nobody is blamed for another's fault.
    crashes           integer NOT NULL DEFAULT 0,      -- since the last recorded step
    solo_crashes      integer NOT NULL DEFAULT 0,      -- those while it ran alone
    takeaways         integer NOT NULL DEFAULT 0,      -- no progress, since the last recorded step
    outages           integer NOT NULL DEFAULT 0,      -- the server was away, not the worker
    releases          integer NOT NULL DEFAULT 0,      -- handed over in order
    suspect           boolean NOT NULL DEFAULT false,  -- only to be run alone

    -- Money, in micro-dollars.
    cost              bigint NOT NULL DEFAULT 0,
    reserved          bigint NOT NULL DEFAULT 0 CHECK (reserved >= 0),

    holds_slot        boolean NOT NULL DEFAULT false,  -- counted in tenants.active
    version           bigint NOT NULL DEFAULT 1,       -- rises with every write

    CONSTRAINT owned_exactly_while_running CHECK (
        (status = 'running') = (lease_owner IS NOT NULL)
        AND (lease_owner IS NULL) = (lease_expires_at IS NULL)),
    CONSTRAINT closed_exactly_when_final CHECK (
        (status IN ('succeeded', 'failed', 'cancelled')) = (closed_at IS NOT NULL)),
    CONSTRAINT slot_only_while_running CHECK (status = 'running' OR NOT holds_slot),
    CONSTRAINT reserved_only_while_running CHECK (status = 'running' OR reserved = 0),
    CONSTRAINT scheduled_has_a_time CHECK (status <> 'scheduled' OR run_after IS NOT NULL)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02,
        autovacuum_vacuum_cost_delay = 0);

-- Only claimable rows, in the order of the claim: finished and running runs cost nothing here.
CREATE INDEX runs_pending ON runs (kind, suspect, priority, ready_at, run_id)
    WHERE status = 'pending';
-- The same for one tenant's head, used when limits are on.
CREATE INDEX runs_pending_by_tenant ON runs (tenant, kind, suspect, priority, ready_at, run_id)
    WHERE status = 'pending';
-- Future runs stay out of the claim's way until they are due.
CREATE INDEX runs_due ON runs (run_after) WHERE status IN ('scheduled', 'waiting');
-- Leases are as many as running runs, so the reclaim reads them all. An index on
-- lease_expires_at would make every heartbeat touch it.
CREATE INDEX runs_running ON runs (run_id) WHERE status = 'running';
CREATE INDEX runs_newest ON runs (created_at);

-- Every change of hands, append-only: proves that each generation was given exactly once.
CREATE TABLE ownership (
    run_id            text NOT NULL,
    version           bigint NOT NULL,    -- of the run, after the change
    lease_generation  bigint NOT NULL,
    event             text NOT NULL,      -- claimed, reclaimed, reaped; left, finished
    owner             text,
    reason            text NOT NULL DEFAULT '',
    at                timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (run_id, version)
);
CREATE UNIQUE INDEX one_owner_per_generation ON ownership (run_id, lease_generation)
    WHERE event IN ('claimed', 'reclaimed', 'reaped');

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'table % is append-only', TG_TABLE_NAME;
END $$;
CREATE TRIGGER append_only BEFORE UPDATE ON ownership
    FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- A worker process. `number` is the key of its crash lock: an identity, since a hash may collide.
CREATE TABLE workers (
    worker_id         text PRIMARY KEY,
    number            integer GENERATED ALWAYS AS IDENTITY UNIQUE,
    process           text NOT NULL,      -- the worker_id it was started with
    host              text NOT NULL,
    pid               integer NOT NULL,
    kinds             text[] NOT NULL,
    versions          text[] NOT NULL,    -- of the kinds, in their order
    concurrency       integer NOT NULL,
    started_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    heartbeat_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    stopped_at        timestamptz,
    dead_at           timestamptz         -- one-way: a worker declared dead takes a new worker_id
) WITH (fillfactor = 50);

-- What a client sees of a run, with what its workers say about themselves.
CREATE VIEW runs_seen AS
SELECT r.run_id, r.kind, r.tenant, r.priority, r.budget, r.created_at, r.status, r.run_after,
       r.closed_at, r.failure, r.lease_owner, r.lease_expires_at, r.heartbeat_at,
       r.progress_at, r.lease_generation, r.cancel_requested, r.cancel_reason,
       r.suspend_requested, r.signals, r.code_version, r.mismatch, r.crashes, r.solo_crashes,
       r.takeaways, r.outages, r.releases, r.suspect, r.cost, r.reserved, r.version,
       clock_timestamp() AS asked_at,
       owner.dead_at AS owner_dead_at,
       EXISTS (SELECT FROM workers w
               WHERE r.kind = ANY (w.kinds) AND w.stopped_at IS NULL AND w.dead_at IS NULL
                 AND w.heartbeat_at > clock_timestamp() - interval '1 minute') AS served
FROM runs r LEFT JOIN workers owner ON owner.worker_id = r.lease_owner;
