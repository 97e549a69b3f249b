"""Group commit: the records and ends of many runs, fenced and made durable by one statement.

- One statement per flush, never BEGIN … COMMIT: a worker that is paused between two statements of a
  transaction would keep the locks of hundreds of runs.
- Each run's row is locked FOR NO KEY UPDATE under its own fence, in the order of the run ids; then
  tenants, then the total. Every statement that locks several rows keeps this order, so none
  deadlocks with another.
- Each write has one of three outcomes. *Written*. *Already ours*: the answer to an earlier commit
  was lost, and this is its repetition. *Fenced*: another owner has the run.
- One bad row must not cost the others: on an error in the data the flush is halved and tried again,
  until only the culprit fails.
- No lingering: a flush takes what is there when the one before has ended. The slower the disk, the
  larger the groups.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from psycopg import errors
from pydantic_core import to_json

from hand_rolled.database import TRANSIENT, Database, Row, persistently
from hand_rolled.entries import Entry, Place
from hand_rolled.lease import Lease, LeaseLost

MAX_ROWS = 500
MAX_BYTES = 4_000_000
REST_OF_ENTRY = 200  # bytes beside its outcome, about

# RECORD and FINISH of the readable path for many runs at once. A run appears once: with the steps
# it recorded, its end, or both.
FLUSH = """
WITH asked AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%(ends)s::json)
        AS asked (run_id text, generation bigint, target text, result text, failure text)
    ORDER BY run_id
), held AS MATERIALIZED (
    -- The fence. Where the lock had to wait, the condition is checked on the newest version.
    -- LATERAL, so that each row is found by its key, in this order, whatever the statistics say.
    SELECT r.run_id, r.tenant, r.holds_slot, r.lease_generation, asked.result, asked.failure,
           CASE WHEN asked.target IS NOT NULL AND r.cancel_requested THEN 'cancelled'
                ELSE asked.target END AS target
    FROM asked CROSS JOIN LATERAL (
        SELECT run_id, tenant, holds_slot, lease_generation, cancel_requested FROM runs
        WHERE run_id = asked.run_id AND lease_generation = asked.generation
          AND lease_owner = %(worker)s
        FOR NO KEY UPDATE
    ) r
), recorded AS (
    -- What conflicts was recorded before: whether by us is asked afterwards.
    INSERT INTO journal (run_id, batch, position, kind, fingerprint, outcome, succeeded, attempt,
                         cost, lease_generation, worker)
    SELECT entry.run_id, entry.batch, entry.position, entry.kind, entry.fingerprint,
           entry.outcome::json, entry.succeeded, entry.attempt, entry.cost, held.lease_generation,
           %(process)s
    FROM json_to_recordset(%(entries)s::json)
        AS entry (run_id text, generation bigint, batch int, position int, kind text,
                  fingerprint text, outcome text, succeeded bool, attempt int, cost bigint)
    JOIN held ON held.run_id = entry.run_id AND held.lease_generation = entry.generation
    ON CONFLICT (run_id, batch, position) DO NOTHING
    RETURNING run_id, batch, position, cost
), progress AS MATERIALIZED (
    SELECT run_id, count(*) AS records, sum(cost) AS cost FROM recorded GROUP BY run_id
), written AS (
    UPDATE runs r
    SET progress_at = clock_timestamp(),
        cost = r.cost + coalesce(progress.cost, 0)
             + CASE WHEN held.target IS NULL THEN 0 ELSE r.reserved END,
        reserved = CASE WHEN held.target IS NULL THEN r.reserved ELSE 0 END,
        crashes = CASE WHEN progress.records > 0 THEN 0 ELSE r.crashes END,
        solo_crashes = CASE WHEN progress.records > 0 THEN 0 ELSE r.solo_crashes END,
        takeaways = CASE WHEN progress.records > 0 THEN 0 ELSE r.takeaways END,
        suspect = r.suspect AND progress.records IS NULL AND held.target IS NULL,
        lease_alone = r.lease_alone AND progress.records IS NULL AND held.target IS NULL,
        status = coalesce(held.target, r.status),
        closed_at = CASE WHEN held.target IS NOT NULL THEN clock_timestamp() END,
        result = CASE held.target WHEN 'succeeded' THEN held.result::json END,
        failure = CASE held.target WHEN 'failed' THEN held.failure END,
        lease_owner = CASE WHEN held.target IS NULL THEN r.lease_owner END,
        lease_expires_at = CASE WHEN held.target IS NULL THEN r.lease_expires_at END,
        suspend_requested = r.suspend_requested AND held.target IS NULL,
        holds_slot = r.holds_slot AND held.target IS NULL,
        version = r.version + 1
    FROM held LEFT JOIN progress ON progress.run_id = held.run_id
    WHERE r.run_id = held.run_id
    RETURNING r.run_id, r.status, r.version, r.lease_generation, held.target,
              coalesce(progress.records, 0) AS records
), logged AS (
    INSERT INTO ownership (run_id, version, lease_generation, event, owner, reason)
    SELECT run_id, version, lease_generation, 'finished', %(worker)s, status
    FROM written WHERE target IS NOT NULL
), closed AS (
    DELETE FROM open_steps o USING recorded
    WHERE o.run_id = recorded.run_id AND o.batch = recorded.batch
      AND o.position = recorded.position
), vacated AS MATERIALIZED (
    SELECT t.tenant FROM tenants t
    WHERE t.tenant IN (SELECT tenant FROM held WHERE holds_slot AND target IS NOT NULL)
    ORDER BY t.tenant FOR NO KEY UPDATE
), counted AS (
    -- Once per flush, and never when nothing is counted.
    UPDATE tenants t SET active = t.active - freed.runs
    FROM (SELECT tenant, count(*) AS runs FROM held
          WHERE holds_slot AND target IS NOT NULL GROUP BY tenant) freed
    WHERE t.tenant = freed.tenant AND t.tenant IN (SELECT tenant FROM vacated)
    RETURNING freed.runs
), summed AS (
    UPDATE active_total SET active = active - (SELECT sum(runs) FROM counted)
    WHERE EXISTS (SELECT FROM counted)
)
SELECT run_id, lease_generation, status, records FROM written
"""


@dataclass(frozen=True)
class End:
    """How a run is to end. `result` is JSON text."""

    target: Literal["succeeded", "failed"]
    result: str | None
    failure: str | None


@dataclass(eq=False)
class Write:
    """What one run wants written: steps it recorded, perhaps its end.

    Further records may join while it waits for its flush.
    """

    lease: Lease
    entries: list[tuple[Place, Entry]] = field(default_factory=list)
    end: End | None = None
    row: Row | None = None
    error: Exception | None = None
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    bytes: int = 0
    """Roughly what it adds to a statement."""

    async def answer(self) -> Row | None:
        """The row that the flush wrote; None if the fence let nothing through. Raises what went
        wrong. Whoever waits here may be cancelled: the write goes on, and others may wait too."""
        await self.answered.wait()
        if self.error is not None:
            raise self.error
        return self.row


class GroupCommit:
    """Collects the writes of a worker's runs and flushes them, one group after the other."""

    def __init__(self, database: Database, *, owner: str, process: str) -> None:
        self._database = database
        self._fixed = {"worker": owner, "process": process}
        self._waiting: dict[Lease, Write] = {}
        self._news = asyncio.Event()

    def add(
        self,
        lease: Lease,
        *,
        record: tuple[Place, Entry] | None = None,
        end: End | None = None,
    ) -> Write:
        """Have a record or an end of one run written with the next flush; returns at once."""
        write = self._waiting.get(lease)
        if write is None:
            write = self._waiting[lease] = Write(lease)
            self._news.set()
        if record is not None:
            write.entries.append(record)
            write.bytes += REST_OF_ENTRY + len(record[1].outcome)
        if end is not None:
            write.end = end
            write.bytes += len(end.result or end.failure or "")
        return write

    async def run(self) -> None:
        """Flush until cancelled."""
        while True:
            await self._news.wait()
            await self.flush()

    async def flush(self) -> None:
        """Write what waits, or as much of it as one statement should carry."""
        self._news.clear()
        group: list[Write] = []
        rows = size = 0
        for lease in list(self._waiting):
            write = self._waiting[lease]
            if group and (rows >= MAX_ROWS or size + write.bytes > MAX_BYTES):
                self._news.set()
                break
            group.append(self._waiting.pop(lease))
            rows, size = rows + 1 + len(write.entries), size + write.bytes
        if group:
            await self._write(group)

    async def _write(self, group: Sequence[Write]) -> None:
        """Write a group, however often it takes, and tell each run what became of its write."""
        try:
            rows = await persistently(
                lambda: self._database.fetch_unprepared(FLUSH, **self._fixed, **_columns(group)),
                until=lambda: max(write.lease.remaining() for write in group),
            )
        except (errors.DataError, errors.IntegrityError) as error:
            if len(group) == 1:
                group[0].error = error
                group[0].answered.set()
                return
            middle = len(group) // 2
            await self._write(group[:middle])
            await self._write(group[middle:])
        except TRANSIENT as error:
            for write in group:
                write.error = LeaseLost(write.lease, f"no answer from the database: {error}")
                write.answered.set()
        except Exception as error:  # whatever it is, nobody may wait for ever
            for write in group:
                write.error = error
                write.answered.set()
        else:
            found = {(row["run_id"], row["lease_generation"]): row for row in rows}
            for write in group:
                write.row = found.get((write.lease.run_id, write.lease.generation))
                write.answered.set()


def _columns(group: Sequence[Write]) -> dict[str, str]:
    """One JSON text each for ends and entries: a dozen arrays would cost the client more than the
    database spends on the whole flush."""
    ends: list[dict[str, Any]] = []
    entries: list[dict[str, Any]] = []
    for write in group:
        lease = write.lease
        end = {"run_id": lease.run_id, "generation": lease.generation}
        ends.append(end if write.end is None else end | vars(write.end))
        for place, entry in write.entries:
            entries.append(
                {
                    "run_id": lease.run_id,
                    "generation": lease.generation,
                    "batch": place.batch,
                    "position": place.position,
                    "kind": entry.kind,
                    "fingerprint": entry.fingerprint,
                    "outcome": entry.outcome,
                    "succeeded": entry.succeeded,
                    "attempt": entry.attempt,
                    "cost": entry.cost,
                }
            )
    return {"ends": to_json(ends).decode(), "entries": to_json(entries).decode()}
