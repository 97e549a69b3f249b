"""What the fence protects: every write of a worker about the steps of its runs.

Each statement starts with an UPDATE of the run's row that names run, generation and owner. That
UPDATE is the fence: it takes the row's lock and, if it had to wait for one, checks the condition
again on the newest version of the row. A plain `SELECT … WHERE lease_generation = …` would not: a
takeover could slip in between the check and the commit. No row means that the run has another
owner now, and nothing is written.

After zero rows the writer reads back before it gives up: if the answer to its own commit was lost
and it tries again, "already mine" is success, not a lost lease.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, LiteralString

from psycopg.errors import UniqueViolation

from hand_rolled.database import TRANSIENT, Connection, Database, Row, bounded, persistently
from hand_rolled.entries import Entry, OpenStep, Place, Recorded, Statements, as_json, as_text
from hand_rolled.lease import Lease, LeaseLost, clock

# → recorded: never executed again. The run made progress, so suspicion ends, as does the
# reservation of the step and its slot.
RECORD = """
WITH held AS (
    UPDATE runs r
    SET progress_at = clock_timestamp(),
        cost = r.cost + %(cost)s,
        reserved = r.reserved - coalesce((
            SELECT sum(amount) FROM reservations v
            WHERE v.run_id = r.run_id AND v.lease_generation = r.lease_generation
              AND v.batch = %(batch)s AND v.position = %(position)s), 0),
        crashes = 0, solo_crashes = 0, takeaways = 0, suspect = false, lease_alone = false,
        version = r.version + 1
    WHERE r.run_id = %(run_id)s AND r.lease_generation = %(generation)s
      AND r.lease_owner = %(worker)s
      AND NOT EXISTS (SELECT FROM journal j WHERE j.run_id = r.run_id
                      AND j.batch = %(batch)s AND j.position = %(position)s)
    RETURNING r.run_id
), recorded AS (
    INSERT INTO journal (run_id, batch, position, kind, fingerprint, outcome, succeeded, attempt,
                         cost, lease_generation, worker)
    SELECT run_id, %(batch)s, %(position)s, %(kind)s, %(fingerprint)s, %(outcome)s::json,
           %(succeeded)s, %(attempt)s, %(cost)s, %(generation)s, %(process)s
    FROM held
), settled AS (
    DELETE FROM reservations v USING held
    WHERE v.run_id = held.run_id AND v.lease_generation = %(generation)s
      AND v.batch = %(batch)s AND v.position = %(position)s
), freed AS (
    DELETE FROM pool_calls c USING held
    WHERE c.run_id = held.run_id AND c.lease_generation = %(generation)s
      AND c.batch = %(batch)s AND c.position = %(position)s
    RETURNING c.pool
), counted AS (
    UPDATE pools p SET calls = p.calls - 1 FROM freed WHERE p.pool = freed.pool
), closed AS (
    DELETE FROM open_steps o USING held
    WHERE o.run_id = held.run_id AND o.batch = %(batch)s AND o.position = %(position)s
)
SELECT run_id FROM held
"""

# An attempt that failed and may be repeated at due_at. Absolute numbers, so that it can be sent
# twice. What the attempt cost is unknown: its reservation is charged, unless the other side
# refused it (`charge` is false).
POSTPONE = """
WITH held AS (
    UPDATE runs r
    SET progress_at = clock_timestamp(),
        cost = r.cost + CASE WHEN %(charge)s THEN coalesce((
            SELECT sum(amount) FROM reservations v
            WHERE v.run_id = r.run_id AND v.lease_generation = r.lease_generation
              AND v.batch = %(batch)s AND v.position = %(position)s), 0) ELSE 0 END,
        reserved = r.reserved - coalesce((
            SELECT sum(amount) FROM reservations v
            WHERE v.run_id = r.run_id AND v.lease_generation = r.lease_generation
              AND v.batch = %(batch)s AND v.position = %(position)s), 0),
        version = r.version + 1
    WHERE r.run_id = %(run_id)s AND r.lease_generation = %(generation)s
      AND r.lease_owner = %(worker)s
    RETURNING r.run_id
), settled AS (
    DELETE FROM reservations v USING held
    WHERE v.run_id = held.run_id AND v.lease_generation = %(generation)s
      AND v.batch = %(batch)s AND v.position = %(position)s
), freed AS (
    DELETE FROM pool_calls c USING held
    WHERE c.run_id = held.run_id AND c.lease_generation = %(generation)s
      AND c.batch = %(batch)s AND c.position = %(position)s
    RETURNING c.pool
), counted AS (
    UPDATE pools p SET calls = p.calls - 1 FROM freed WHERE p.pool = freed.pool
), noted AS (
    INSERT INTO open_steps AS o (run_id, batch, position, failures, deferrals, error, due_at,
                                 checkpoint)
    SELECT run_id, %(batch)s, %(position)s, %(failures)s, %(deferrals)s, %(error)s,
           clock_timestamp() + %(wait)s, %(checkpoint)s::json
    FROM held
    ON CONFLICT (run_id, batch, position) DO UPDATE
    SET failures = excluded.failures, deferrals = excluded.deferrals, error = excluded.error,
        due_at = excluded.due_at, checkpoint = coalesce(excluded.checkpoint, o.checkpoint)
)
SELECT run_id FROM held
"""

LOAD = """
SELECT batch, position, kind, fingerprint, outcome FROM journal
WHERE run_id = %(run_id)s ORDER BY batch, position
"""

LOAD_OPEN = """
SELECT batch, position, failures, deferrals, checkpoint,
       extract(epoch FROM due_at - clock_timestamp())::float8 AS seconds
FROM open_steps WHERE run_id = %(run_id)s
"""

RECORDED = """
SELECT lease_generation, fingerprint, outcome FROM journal
WHERE run_id = %(run_id)s AND batch = %(batch)s AND position = %(position)s
"""


OWN_TABLES = ("journal", "reservations", "pool_calls")


@dataclass
class Journal:
    """The journal of one run, written under one lease.

    Transient database errors are retried while the lease is trusted. Raises `LeaseLost`.
    """

    database: Database
    lease: Lease
    process: str
    _fence: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self._fence = {
            "run_id": self.lease.run_id,
            "generation": self.lease.generation,
            "worker": self.lease.owner,
        }

    async def load(self) -> tuple[dict[Place, Recorded], dict[Place, OpenStep]]:
        """What is recorded, and what is known about steps that are not."""
        rows = await self.patiently(LOAD)
        recorded = {
            Place(row["batch"], row["position"]): Recorded(row["fingerprint"], row["outcome"])
            for row in rows
        }
        asked = clock()
        opened = {
            Place(row["batch"], row["position"]): OpenStep(
                failures=row["failures"],
                deferrals=row["deferrals"],
                checkpoint=row["checkpoint"],
                due=None if row["seconds"] is None else asked + row["seconds"],
            )
            for row in await self.patiently(LOAD_OPEN)
        }
        return recorded, opened

    async def record(self, place: Place, entry: Entry) -> None:
        """Record an outcome, with the app's own statements if there are any."""
        values = self.values(place) | {
            "kind": entry.kind,
            "fingerprint": entry.fingerprint,
            "outcome": entry.outcome,
            "succeeded": entry.succeeded,
            "attempt": entry.attempt,
            "cost": entry.cost,
            "process": self.process,
        }
        if entry.statements:
            limit = self.database.client_timeout
            rows = await self._retried(
                lambda: bounded(limit, self._record_with(values, entry.statements))
            )
        else:
            rows = await self.patiently(RECORD, **values)
        if not rows and not await self.already_mine(place, entry.fingerprint):
            raise LeaseLost(self.lease, "its record was refused")

    async def _record_with(self, values: dict[str, Any], statements: Statements) -> list[Row]:
        async with self.database.transaction() as connection:
            rows = await _fetch(connection, RECORD, values)
            if rows:  # the run's row is ours until the commit
                for text, parameters in statements:
                    await connection.execute(text, parameters)
        return rows

    async def already_mine(self, place: Place, fingerprint: str) -> bool:
        """True if the step was recorded under this lease: the answer to our commit was lost."""
        return self.is_mine(await self.patiently(RECORDED, **self.values(place)), fingerprint)

    def is_mine(self, rows: list[Row], fingerprint: str) -> bool:
        """True if this lease recorded that step, by what `RECORDED` found."""
        return bool(rows) and (
            rows[0]["lease_generation"] == self.lease.generation
            and rows[0]["fingerprint"] == fingerprint
        )

    async def postpone(
        self, place: Place, step: OpenStep, *, wait: float, error: str, charge: bool
    ) -> None:
        """Note a failed attempt that may be repeated in `wait` seconds."""
        rows = await self.patiently(
            POSTPONE,
            **self.values(place),
            failures=step.failures,
            deferrals=step.deferrals,
            checkpoint=None if step.checkpoint is None else as_json(step.checkpoint),
            wait=timedelta(seconds=wait),
            error=as_text(error),
            charge=charge,
        )
        self.require(rows, "its failed attempt was refused")

    async def patiently(self, statement: LiteralString, **values: Any) -> list[Row]:
        """Run a fenced statement that is safe to repeat, while the lease is trusted."""
        parameters = self._fence | values
        return await self._retried(lambda: self.database.fetch(statement, **parameters))

    async def _retried(self, attempt: Any) -> list[Row]:
        try:
            try:
                rows: list[Row] = await persistently(attempt, until=self.lease.remaining)
            except UniqueViolation as twice:
                if twice.diag.table_name not in OWN_TABLES:
                    raise  # the app's own statement
                # An earlier try, given up for lost, was carried out while this one waited for the
                # run's row: too late for this one's snapshot, but the next one sees it.
                rows = await persistently(attempt, until=self.lease.remaining)
        except TRANSIENT as error:
            why = f"no answer from the database: {error}".removesuffix(": ")
            raise LeaseLost(self.lease, why) from error
        return rows

    def values(self, place: Place) -> dict[str, Any]:
        """Parameters that name the fence and a step."""
        return self._fence | {"batch": place.batch, "position": place.position}

    def require(self, rows: list[Row], why: str) -> None:
        """Raise `LeaseLost` if the fence refused the write."""
        if not rows:
            raise LeaseLost(self.lease, why)


async def _fetch(
    connection: Connection, statement: LiteralString, values: Mapping[str, Any]
) -> list[Row]:
    cursor = await connection.execute(statement, values)
    return await cursor.fetchall()
