"""How a run moves from state to state, apart from claim and reclaim. `STATES.md` is the map.

Each transition is one statement. Those of the owner name run, generation and owner, under a lock
on the run's row: an UPDATE's own condition is checked again after it waited for that lock, so a
takeover in between makes it change nothing. Those of a client are valid in any state and say what
they found.

"The first final state wins" alone would let a finish beat a cancellation that was already
acknowledged. So the owner's statements look at the requests too: a requested cancellation wins.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, LiteralString

from pydantic import JsonValue

from hand_rolled.database import Row
from hand_rolled.entries import as_json, as_text
from hand_rolled.journal import Journal
from hand_rolled.lease import LeaseLost

# (nothing) → pending. No row: the run was there already, and the caller compares its content.
ENQUEUE = """
WITH tenant AS (
    INSERT INTO tenants (tenant) VALUES (%(tenant)s) ON CONFLICT DO NOTHING
)
INSERT INTO runs (run_id, kind, tenant, priority, payload, budget)
VALUES (%(run_id)s, %(kind)s, %(tenant)s, %(priority)s, %(payload)s, %(budget)s)
ON CONFLICT (run_id) DO NOTHING
RETURNING run_id
"""

CONTENT = "SELECT run_id, kind, tenant, payload, budget FROM runs WHERE run_id = ANY (%(run_ids)s)"

# running → succeeded | failed, or cancelled if that was requested. A cancelled run keeps no result.
FINISH = """
WITH held AS MATERIALIZED (
    SELECT run_id, tenant, holds_slot,
           CASE WHEN cancel_requested THEN 'cancelled' ELSE %(target)s END AS target
    FROM runs
    WHERE run_id = %(run_id)s AND lease_generation = %(generation)s AND lease_owner = %(worker)s
    FOR NO KEY UPDATE
), finished AS (
    UPDATE runs r
    SET status = held.target,
        closed_at = clock_timestamp(),
        result = CASE held.target WHEN 'succeeded' THEN %(result)s::json END,
        failure = CASE held.target WHEN 'failed' THEN %(failure)s::text END,
        lease_owner = NULL, lease_expires_at = NULL, lease_alone = false,
        suspend_requested = false, suspect = false, holds_slot = false,
        cost = r.cost + r.reserved, reserved = 0,
        version = r.version + 1
    FROM held
    WHERE r.run_id = held.run_id
    RETURNING r.run_id, r.status, r.version, r.lease_generation
), logged AS (
    INSERT INTO ownership (run_id, version, lease_generation, event, owner, reason)
    SELECT run_id, version, lease_generation, 'finished', %(worker)s, status FROM finished
), counted AS (
    UPDATE tenants t SET active = t.active - 1
    FROM held WHERE held.holds_slot AND t.tenant = held.tenant
    RETURNING t.tenant
), summed AS (
    UPDATE active_total SET active = active - 1 WHERE EXISTS (SELECT FROM counted)
)
SELECT status FROM finished
"""

# running → pending (handed over), scheduled (retry, sleep) or waiting (for a signal);
# or cancelled, or suspended, if that was requested. Parking compares the number of signals: asking
# whether one exists would miss a signal that arrives between the question and the parking. Then no
# row changes, and the owner looks again.
LEAVE = """
WITH held AS MATERIALIZED (
    SELECT run_id, tenant, holds_slot,
           CASE WHEN cancel_requested THEN 'cancelled'
                WHEN suspend_requested THEN 'suspended'
                ELSE %(target)s END AS target
    FROM runs
    WHERE run_id = %(run_id)s AND lease_generation = %(generation)s AND lease_owner = %(worker)s
      AND (signals = %(signals_seen)s OR %(signals_seen)s::bigint IS NULL
           OR cancel_requested OR suspend_requested)
    FOR NO KEY UPDATE
), left_it AS (
    UPDATE runs r
    SET status = held.target,
        run_after = CASE WHEN held.target IN ('scheduled', 'waiting')
                         THEN clock_timestamp() + %(wait)s::interval END,
        ready_at = to_timestamp(0),
        closed_at = CASE held.target WHEN 'cancelled' THEN clock_timestamp() END,
        lease_owner = NULL, lease_expires_at = NULL, lease_alone = false,
        suspend_requested = false, holds_slot = false,
        cost = r.cost + r.reserved, reserved = 0,
        releases = r.releases + (held.target = 'pending')::int,
        mismatch = %(mismatch)s::text,
        unfit_workers = CASE WHEN %(mismatch)s::text IS NULL THEN r.unfit_workers
                             ELSE r.unfit_workers || %(worker)s::text END,
        version = r.version + 1
    FROM held
    WHERE r.run_id = held.run_id
    RETURNING r.run_id, r.status, r.version, r.lease_generation
), logged AS (
    INSERT INTO ownership (run_id, version, lease_generation, event, owner, reason)
    SELECT run_id, version, lease_generation, 'left', %(worker)s, status FROM left_it
), counted AS (
    UPDATE tenants t SET active = t.active - 1
    FROM held WHERE held.holds_slot AND t.tenant = held.tenant
    RETURNING t.tenant
), summed AS (
    UPDATE active_total SET active = active - 1 WHERE EXISTS (SELECT FROM counted)
)
SELECT status FROM left_it
"""

# After zero rows: was it the fence, was it done already and the answer got lost, or did a signal
# come?
READ_BACK = """
SELECT r.status, r.lease_generation, r.lease_owner, r.signals,
       EXISTS (SELECT FROM ownership o
               WHERE o.run_id = r.run_id AND o.lease_generation = %(generation)s
                 AND o.owner = %(worker)s AND o.event IN ('left', 'finished')) AS ended_by_us
FROM runs r WHERE r.run_id = %(run_id)s
"""

# pending, scheduled, waiting, suspended → cancelled; running → a request to the owner; final: as is
CANCEL = """
UPDATE runs
SET cancel_requested = true,
    cancel_reason = CASE WHEN cancel_requested THEN cancel_reason ELSE %(reason)s END,
    status = CASE status WHEN 'running' THEN 'running' ELSE 'cancelled' END,
    closed_at = CASE status WHEN 'running' THEN NULL ELSE clock_timestamp() END,
    run_after = NULL,
    version = version + 1
WHERE run_id = %(run_id)s AND status NOT IN ('succeeded', 'failed', 'cancelled')
RETURNING status
"""

# waiting → pending; any other open state: the signal is kept for later. Once per signal_id: the
# lock on the run makes a second delivery of the same signal wait, and then find the first.
SIGNAL = """
WITH run AS MATERIALIZED (
    SELECT run_id, signals, status FROM runs WHERE run_id = %(run_id)s FOR NO KEY UPDATE
), delivered AS (
    INSERT INTO signals (run_id, signal_id, seq, name, payload)
    SELECT run_id, %(signal_id)s, signals + 1, %(name)s, %(payload)s::json FROM run
    WHERE status NOT IN ('succeeded', 'failed', 'cancelled')
    ON CONFLICT (run_id, signal_id) DO NOTHING
    RETURNING run_id
), counted AS (
    UPDATE runs r
    SET signals = r.signals + 1,
        status = CASE r.status WHEN 'waiting' THEN 'pending' ELSE r.status END,
        run_after = CASE r.status WHEN 'waiting' THEN NULL ELSE r.run_after END,
        version = r.version + 1
    FROM delivered
    WHERE r.run_id = delivered.run_id
    RETURNING r.run_id
)
SELECT run.status, EXISTS (SELECT FROM counted) AS new,
       EXISTS (SELECT FROM signals s
               WHERE s.run_id = run.run_id AND s.signal_id = %(signal_id)s) AS known
FROM run
"""

# pending, scheduled, waiting → suspended; running → a request to the owner
SUSPEND = """
UPDATE runs
SET suspend_requested = (status = 'running'),
    status = CASE status WHEN 'running' THEN 'running' ELSE 'suspended' END,
    run_after = NULL,
    version = version + 1
WHERE run_id = %(run_id)s AND status IN ('pending', 'scheduled', 'waiting', 'running')
RETURNING status
"""

# suspended → pending, where it waits or sleeps again if it did; running: the request is withdrawn
RESUME = """
UPDATE runs
SET suspend_requested = false,
    status = CASE status WHEN 'running' THEN 'running' ELSE 'pending' END,
    version = version + 1
WHERE run_id = %(run_id)s AND (status = 'suspended' OR status = 'running' AND suspend_requested)
RETURNING status
"""


class Ending:
    """The end of an ownership, in order. Safe to repeat after an answer was lost."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def finish(self, *, result: JsonValue = None, failure: str | None = None) -> str:
        """End the run. Returns the state it is in now. Raises `LeaseLost`, and `ValueError` for
        a result that is not JSON."""
        rows = await self._sent(
            FINISH,
            target="succeeded" if failure is None else "failed",
            result=as_json(result),
            failure=None if failure is None else as_text(failure),
        )
        return self._state(rows[0]) if rows else self._already(await self._read_back())

    async def leave(
        self,
        target: str,
        *,
        wait: float | None = None,
        signals_seen: int | None = None,
        mismatch: str | None = None,
    ) -> str | None:
        """Give the run back as `target`. Returns the state it is in now, or None if signals came
        that we had not seen: then it is still ours. Raises `LeaseLost`."""
        rows = await self._sent(
            LEAVE,
            target=target,
            wait=None if wait is None else timedelta(seconds=wait),
            signals_seen=signals_seen,
            mismatch=None if mismatch is None else as_text(mismatch),
        )
        if rows:
            return self._state(rows[0])
        found = await self._read_back()
        lease = self._journal.lease
        if (found["lease_generation"], found["lease_owner"]) == (lease.generation, lease.owner):
            lease.ending = False
            return None
        return self._already(found)

    async def _sent(self, statement: LiteralString, **values: Any) -> list[Row]:
        self._journal.lease.ending = True
        return await self._journal.patiently(statement, **values)

    async def _read_back(self) -> Row:
        rows = await self._journal.patiently(READ_BACK)
        if not rows:
            raise LeaseLost(self._journal.lease, "the run is gone")
        return rows[0]

    def _already(self, found: Row) -> str:
        if not found["ended_by_us"]:
            raise LeaseLost(self._journal.lease, "the end of its work was refused")
        return self._state(found)

    @staticmethod
    def _state(row: dict[str, Any]) -> str:
        state: str = row["status"]
        return state
