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
    generation bigint,           -- claims: the engine's own, or else how many there were
    lease_left double precision  -- claims: seconds that the previous owner still had
);
CREATE INDEX IF NOT EXISTS camera_runs ON camera (run_id, seq);

CREATE OR REPLACE FUNCTION camera_sees_runs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.closed_at IS DISTINCT FROM OLD.closed_at THEN
        INSERT INTO camera (event, run_id, key) VALUES ('finish', NEW.run_id, 'finish');
    ELSIF NEW.heartbeat_at IS DISTINCT FROM OLD.heartbeat_at THEN
        INSERT INTO camera (event, run_id, key) VALUES ('heartbeat', NEW.run_id, 'heartbeat');
    ELSIF NEW.lease_expires_at IS DISTINCT FROM OLD.lease_expires_at
          OR NEW.lease_owner IS DISTINCT FROM OLD.lease_owner THEN
        INSERT INTO camera (event, run_id, key, generation, lease_left)
        SELECT 'claim', NEW.run_id, 'claim',
            COALESCE((to_jsonb(NEW) ->> 'lease_generation')::bigint, 1 + count(*)),
            CASE WHEN OLD.status = 'running'
                 THEN extract(epoch FROM OLD.lease_expires_at - clock_timestamp()) END
        FROM camera WHERE run_id = NEW.run_id AND event = 'claim';
    END IF;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER camera AFTER UPDATE ON runs
    FOR EACH ROW EXECUTE FUNCTION camera_sees_runs();

CREATE OR REPLACE FUNCTION camera_sees_journal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO camera (event, run_id, key)
    VALUES ('journal', NEW.run_id, split_part(NEW.key, '/', 2));
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER camera AFTER INSERT ON journal
    FOR EACH ROW EXECUTE FUNCTION camera_sees_journal();
"""

_READ = """
SELECT at, event, run_id, key, writer, lease_left,
    COALESCE(generation, (
        SELECT claim.generation FROM camera AS claim
        WHERE claim.run_id = seen.run_id AND claim.event = 'claim'
          AND claim.writer = seen.writer AND claim.seq < seen.seq
        ORDER BY claim.seq DESC LIMIT 1), 0) AS generation
FROM camera AS seen ORDER BY seq
"""


@dataclass(frozen=True)
class Note:
    """One event; `generation` is the one under which its writer acted, 0 if it never claimed."""

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
