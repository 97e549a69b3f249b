"""What the engines themselves have on record, in one shape for both.

hand_rolled keeps an append-only `ownership` table and a `journal` whose rows carry the generation
that wrote them. Temporal keeps a history: of each activity the attempt that was accepted, the
worker that ran it, and what had ended the attempt before; earlier ones leave no event, so who
owned a step then is known from the ledger alone. What was refused is known only from the
workers' logs, on both engines.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from psycopg.rows import dict_row
from pydantic import JsonValue
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import GetSystemInfoRequest

from comparison.actions import billed
from comparison.evidence import Clock, End, Ownership, RefusedWrite, Write
from comparison.ledger import Ledger
from comparison.story import camera
from comparison.story.adapter.engine import StoryEngine
from comparison.story.adapter.settings import SCHEMA
from temporal_version.engine import TemporalEngine
from two_workers import Engine, Fence

CLAIMS = """
    SELECT run_id, lease_generation, owner, event, reason, at
    FROM ownership
    WHERE event IN ('claimed', 'reclaimed', 'reaped') AND run_id = ANY(%(runs)s)
    ORDER BY run_id, lease_generation
"""

JOURNAL = """
    SELECT run_id || '/' || batch || '.' || position AS key, lease_generation, worker, recorded_at
    FROM journal
    WHERE run_id = ANY(%(runs)s)
    ORDER BY recorded_at
"""

DURABILITY = """
    SELECT name, setting FROM pg_settings
    WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes', 'server_version')
"""


@dataclass(frozen=True)
class Records:
    """An engine's own account."""

    ownerships: tuple[Ownership, ...]
    writes: tuple[Write, ...]
    refused_writes: tuple[RefusedWrite, ...]
    server: dict[str, JsonValue]
    actions: dict[str, dict[str, int]] = field(default_factory=dict)


async def collect(
    engine: Engine,
    env: Mapping[str, str],
    ends: Sequence[End],
    ledger: Ledger,
    clock: Clock,
    logs: Path,
) -> Records:
    """The account of `engine`, on the ledger's clock."""
    match engine:
        case TemporalEngine():
            return await _temporal(engine, ends, ledger, clock, logs)
        case StoryEngine():
            return await _story(env["DATABASE_URL"], ends, clock)
        case _:
            return await _hand_rolled(env["DATABASE_URL"], ends, clock, logs)


async def _temporal(
    engine: TemporalEngine, ends: Sequence[End], ledger: Ledger, clock: Clock, logs: Path
) -> Records:
    about = await engine.client.workflow_service.get_system_info(GetSystemInfoRequest())
    histories = await asyncio.gather(*(_history(engine, end.run) for end in ends))
    fences = _fences(ledger)
    return Records(
        ownerships=tuple(
            owned
            for end, events in zip(ends, histories, strict=True)
            for owned in _dispatches(end.run, events, fences, clock)
        ),
        writes=tuple(_from_steps(ends, ledger, clock)),
        refused_writes=tuple(refusals(logs, TEMPORAL_REFUSAL)),
        server={"server_version": about.server_version},
        actions={e.run: billed(events) for e, events in zip(ends, histories, strict=True)},
    )


async def _history(engine: TemporalEngine, run: str) -> Sequence[HistoryEvent]:
    return (await engine.client.get_workflow_handle(run).fetch_history()).events


def _dispatches(
    run: str,
    events: Sequence[HistoryEvent],
    fences: Mapping[tuple[str, int], Fence],
    clock: Clock,
) -> list[Ownership]:
    """The last dispatch of each activity of a run, and what had ended the one before it.

    History keeps no event of the earlier attempts.
    """
    places: dict[int, str] = {}
    found = []
    for event in events:
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            scheduled = event.activity_task_scheduled_event_attributes
            places[event.event_id] = scheduled.activity_id.partition(":")[0]
        elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED:
            started = event.activity_task_started_event_attributes
            key = f"{run}/{places[started.scheduled_event_id]}"
            found.append(
                Ownership(
                    what=key,
                    fence=fences.get((key, started.attempt), (0, started.attempt)),
                    worker=started.identity,
                    since_ns=event.event_time.ToNanoseconds() - clock.offset_ns,
                    cause=started.last_failure.message or "dispatched",
                )
            )
    return found


def _fences(ledger: Ledger) -> dict[tuple[str, int], Fence]:
    """The fence under which the ledger saw each attempt of each step."""
    return {(c.who.key, c.who.fence[-1]): c.who.fence for c in ledger.calls.values()}


async def _hand_rolled(url: str, ends: Sequence[End], clock: Clock, logs: Path) -> Records:
    runs = {"runs": [end.run for end in ends]}
    async with await psycopg.AsyncConnection.connect(
        url, row_factory=dict_row, autocommit=True
    ) as connection:
        claims = await (await connection.execute(CLAIMS, runs)).fetchall()
        journal = await (await connection.execute(JOURNAL, runs)).fetchall()
        settings = await (await connection.execute(DURABILITY)).fetchall()
    return Records(
        ownerships=tuple(
            Ownership(
                what=row["run_id"],
                fence=(row["lease_generation"],),
                worker=row["owner"],
                since_ns=clock.mono(row["at"]),
                cause=f"{row['event']}: {row['reason']}" if row["reason"] else row["event"],
            )
            for row in claims
        ),
        writes=tuple(
            Write(
                key=row["key"],
                fence=(row["lease_generation"],),
                worker=row["worker"],
                t_ns=clock.mono(row["recorded_at"]),
            )
            for row in journal
        ),
        refused_writes=tuple(refusals(logs, HAND_ROLLED_REFUSAL)),
        server={row["name"]: row["setting"] for row in settings},
    )


async def _story(url: str, ends: Sequence[End], clock: Clock) -> Records:
    """The story's table keeps no record of owners; the harness's camera over it does.

    It refuses no write, so there are none to be found in the logs.
    """
    known = {end.run for end in ends}
    notes = [note for note in await camera.develop(url, SCHEMA) if note.run_id in known]
    async with await psycopg.AsyncConnection.connect(url, row_factory=dict_row) as connection:
        settings = await (await connection.execute(DURABILITY)).fetchall()
    return Records(
        ownerships=camera.ownerships(notes, clock),
        writes=camera.writes(notes, clock),
        refused_writes=(),
        server={row["name"]: row["setting"] for row in settings},
    )


def _from_steps(ends: Sequence[End], ledger: Ledger, clock: Clock) -> Iterator[Write]:
    """Temporal's accepted completions, with the fence under which the ledger saw that attempt."""
    fences = _fences(ledger)
    for end in ends:
        for step in end.steps:
            fence = fences.get((step.key, step.attempt))
            if fence is not None:  # a step that calls nothing outside has no place in the ledger
                yield Write(
                    key=step.key,
                    fence=fence,
                    worker=step.worker or "",
                    t_ns=clock.mono(step.recorded_at),
                )


HAND_ROLLED_REFUSAL = re.compile(r"lost \S+ generation \d+: .* was refused")
TEMPORAL_REFUSAL = re.compile(r"Activity not found on completion")


def refusals(logs: Path, pattern: re.Pattern[str]) -> Iterator[RefusedWrite]:
    """Lines in which a worker says that its write was refused."""
    for log in sorted(logs.glob("worker-*.log")):
        worker = log.stem
        for line in log.read_text().splitlines():
            stamp, _, text = line.partition(" ")
            if found := re.match(r"worker (\S+) ready", text):
                worker = found[1]
            if pattern.search(text):
                yield RefusedWrite(worker=worker, t_ns=int(stamp), line=text[:300])
