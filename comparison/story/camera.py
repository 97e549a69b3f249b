"""The harness's own record of who claimed and who wrote: not a part of the story's table.

Triggers note every change of hands and every write together with the session that made it (its
application name is the worker's id). An engine that has no generation cannot be asked whether it
accepted a stale owner's write; these notes answer without its help. Claims are numbered for each
run in the order in which they were made, so an owner's number is what its generation would be.

    event    claim       somebody became the owner (perhaps the same worker again)
             heartbeat   a lease was renewed
             journal     an outcome was accepted
             finish      the run's end was accepted
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import class_row

from comparison.evidence import Clock, Ownership, Write

CREATE = """
CREATE TABLE IF NOT EXISTS camera (
    seq        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    event      text NOT NULL,
    run_id     text NOT NULL,
    key        text NOT NULL,
    writer     text NOT NULL DEFAULT current_setting('application_name'),
    generation bigint NOT NULL,  -- of the run: the engine's own, or else the number of claims
    lease_left double precision  -- claims: seconds that the previous owner still had
);
CREATE INDEX IF NOT EXISTS camera_runs ON camera (run_id, seq);

CREATE OR REPLACE FUNCTION camera_notes(event text, run runs, key text, lease_left float8)
RETURNS void LANGUAGE sql AS $$
    INSERT INTO camera (event, run_id, key, lease_left, generation)
    SELECT event, run.run_id, key, lease_left, COALESCE(
        (to_jsonb(run) ->> 'lease_generation')::bigint,
        (event = 'claim')::int + (SELECT count(*) FROM camera AS earlier
            WHERE earlier.run_id = run.run_id AND earlier.event = 'claim'))
$$;

CREATE OR REPLACE FUNCTION camera_sees_runs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.closed_at IS DISTINCT FROM OLD.closed_at THEN
        PERFORM camera_notes('finish', NEW, 'finish', NULL);
    ELSIF NEW.heartbeat_at IS DISTINCT FROM OLD.heartbeat_at THEN
        PERFORM camera_notes('heartbeat', NEW, 'heartbeat', NULL);
    ELSIF NEW.lease_expires_at IS DISTINCT FROM OLD.lease_expires_at
          OR NEW.lease_owner IS DISTINCT FROM OLD.lease_owner THEN
        PERFORM camera_notes('claim', NEW, 'claim', CASE WHEN OLD.status = 'running'
            THEN extract(epoch FROM OLD.lease_expires_at - clock_timestamp())::float8 END);
    END IF;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER camera AFTER UPDATE ON runs
    FOR EACH ROW EXECUTE FUNCTION camera_sees_runs();

CREATE OR REPLACE FUNCTION camera_sees_journal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM camera_notes('journal', runs, split_part(NEW.key, '/', 2), NULL)
    FROM runs WHERE run_id = NEW.run_id;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER camera AFTER INSERT ON journal
    FOR EACH ROW EXECUTE FUNCTION camera_sees_journal();
"""

# A writer acts under the generation of its own last claim; without one, under the run's.
_READ = """
SELECT at, event, run_id, key, writer, lease_left,
    CASE WHEN event = 'claim' THEN generation ELSE COALESCE((
        SELECT claim.generation FROM camera AS claim
        WHERE claim.run_id = seen.run_id AND claim.event = 'claim'
          AND claim.writer = seen.writer AND claim.seq < seen.seq
        ORDER BY claim.seq DESC LIMIT 1), generation) END AS generation
FROM camera AS seen ORDER BY seq
"""


@dataclass(frozen=True)
class Note:
    """One event; `generation` is the one under which its writer acted."""

    at: datetime
    event: str
    run_id: str
    key: str
    writer: str
    generation: int
    lease_left: float | None


async def read_notes(connection: psycopg.AsyncConnection[Any]) -> list[Note]:
    """Everything that was noted so far, in order."""
    async with connection.cursor(row_factory=class_row(Note)) as cursor:
        return await (await cursor.execute(_READ)).fetchall()


async def develop(database_url: str, schema: str) -> list[Note]:
    """The notes that a camera took in `schema`."""
    options = f"-c search_path={schema}"
    async with await psycopg.AsyncConnection.connect(database_url, options=options) as connection:
        return await read_notes(connection)


def ownerships(notes: Iterable[Note], clock: Clock) -> tuple[Ownership, ...]:
    """The claims, as the checks read them."""
    return tuple(
        Ownership(
            what=note.run_id,
            fence=(note.generation,),
            worker=note.writer,
            since_ns=clock.mono(note.at),
            cause="claimed" if note.lease_left is None else "reclaimed",
        )
        for note in notes
        if note.event == "claim"
    )


def writes(notes: Iterable[Note], clock: Clock) -> tuple[Write, ...]:
    """Every write that was accepted from somebody who acted as an owner."""
    return tuple(
        Write(
            key=f"{note.run_id}/{note.key}",
            fence=(note.generation,),
            worker=note.writer,
            t_ns=clock.mono(note.at),
        )
        for note in notes
        if note.event != "claim"
    )
