"""What a scenario can see of a run: rows of a table, or the server's answers and its history.

An observer looks again and again and keeps what has changed; nothing is derived from what the
scenario did. `stale_commit` sends what an owner of the past would send: the engine's own statement
with the old generation, or Temporal's own call with the token of the old attempt.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import datetime, timedelta
from typing import Any, Protocol

import psycopg
from psycopg.rows import dict_row
from pydantic import JsonValue
from temporalio.client import Client
from temporalio.service import RPCError

from comparison.mapping.recording import Kind, Moment
from comparison.mapping.tour.steps import Stay, Visit
from two_workers.steps import Succeeded, dump_outcome, fingerprint

LOOK = 0.02
"""Seconds between two looks. What changes twice in between is seen once, as in any snapshot."""

CLAIMERS = """
SELECT application_name AS name FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND query LIKE '%%head AS MATERIALIZED%%'
"""
"""Connections, named after their worker, whose newest statement is a claim."""

UNEVENTFUL = (
    "WORKFLOW_TASK_SCHEDULED", "WORKFLOW_TASK_STARTED", "WORKFLOW_TASK_COMPLETED",
    "UPSERT_WORKFLOW_SEARCH_ATTRIBUTES",
)  # fmt: skip
"""Events that are left out of a recording: they surround each of the others."""

ROW = (
    "status", "lease_owner", "lease_expires_at", "heartbeat_at", "progress_at", "lease_generation",
    "cancel_requested", "signals", "crashes", "solo_crashes", "takeaways", "releases", "suspect",
    "mismatch", "cost", "reserved", "holds_slot", "tenant", "failure", "version",
)  # fmt: skip


class Observer(Protocol):
    """Watches the runs of one scenario on one engine."""

    def watch(self, run_id: str) -> None:
        """Look at this run from now on."""
        ...

    def held(self, run_id: str) -> AbstractAsyncContextManager[None]:
        """Let the claims of two workers meet at this run, as far as the engine lets us.

        On the table: its row stays locked until two workers have looked for work. A claim that
        skips locked rows passes by; one that does not waits beside its rival. On Temporal there is
        nothing to hold: the server hands out the task.
        """
        ...

    async def claims(self, run_id: str) -> int:
        """How often the run (on Temporal: its steps) was given to a worker."""
        ...

    def renewals(self, run_id: str) -> int:
        """How many heartbeats of the run's present owner were seen."""
        ...

    def mismatches(self, run_id: str) -> bool:
        """True once a worker's code was seen not to fit the run."""
        ...

    async def moments(self, began: float) -> list[Moment]:
        """Everything that was seen, in seconds since `began` (a `time.time()`)."""
        ...

    async def stale_commit(self, call: Mapping[str, Any], step: Visit) -> str:
        """Commit `step`, begun as `call`, as its owner then would. Returns what came back."""
        ...


def moment(kind: Kind, at: float, run: str, what: str, data: Mapping[str, Any] = {}) -> Moment:
    """A moment with values that JSON can hold; times become seconds since the epoch."""
    return Moment(t=at, kind=kind, run=run, what=what, data={k: _plain(v) for k, v in data.items()})


def _plain(value: Any) -> JsonValue:
    match value:
        case datetime():
            return value.timestamp()
        case timedelta():
            return value.total_seconds()
        case None | bool() | int() | float() | str():
            return value
        case dict():
            return {str(k): _plain(v) for k, v in value.items()}
        case list() | tuple():
            return [_plain(v) for v in value]
        case _:
            return str(value)


class TableObserver:
    """Rows of `runs`, `ownership` and `journal`."""

    def __init__(self, database_url: str) -> None:
        self._url = database_url
        self._runs: list[str] = []
        self._versions: dict[str, int] = {}
        self._seen: list[Moment] = []

    @asynccontextmanager
    async def looking(self) -> AsyncIterator[TableObserver]:
        """Look while the body runs."""
        task = asyncio.create_task(self._look())
        try:
            yield self
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def watch(self, run_id: str) -> None:
        self._runs.append(run_id)

    async def _look(self) -> None:
        columns = ", ".join(ROW)
        query = (
            f"SELECT run_id, extract(epoch FROM clock_timestamp())::float8 AS now, {columns} "
            "FROM runs WHERE run_id = ANY (%s) ORDER BY run_id"
        )
        async with await self._connect() as connection:
            while True:
                for row in await _rows(connection, query, [self._runs]):
                    run, now = row.pop("run_id"), row.pop("now")
                    if self._versions.get(run) != row["version"]:
                        self._versions[run] = row["version"]
                        self._seen.append(moment("row", now, run, row["status"], row))
                await asyncio.sleep(LOOK)

    @asynccontextmanager
    async def held(self, run_id: str) -> AsyncIterator[None]:
        async with await self._connect() as connection, connection.transaction():
            await _rows(connection, "SELECT FROM runs WHERE run_id = %s FOR UPDATE", [run_id])
            yield
            async with asyncio.timeout(60), await self._connect() as other:
                claimers: set[str] = set()
                while len(claimers) < 2:
                    claimers |= {row["name"] for row in await _rows(other, CLAIMERS, [])}
                    await asyncio.sleep(LOOK)

    async def claims(self, run_id: str) -> int:
        query = "SELECT event FROM ownership WHERE run_id = %s"
        async with await self._connect() as connection:
            events = [row["event"] for row in await _rows(connection, query, [run_id])]
        return sum(event in ("claimed", "reclaimed") for event in events)

    def renewals(self, run_id: str) -> int:
        beats = {m.data["heartbeat_at"] for m in self._seen if m.run == run_id}
        return max(0, len(beats - {None}) - 1)  # the first is the claim's own

    def mismatches(self, run_id: str) -> bool:
        return any(m.run == run_id and m.data["mismatch"] is not None for m in self._seen)

    async def moments(self, began: float) -> list[Moment]:
        async with await self._connect() as connection:
            owned = await _rows(
                connection,
                "SELECT run_id, at, event, lease_generation, owner, reason FROM ownership "
                "WHERE run_id = ANY (%s) ORDER BY run_id, version",
                [self._runs],
            )
            journal = await _rows(
                connection,
                "SELECT run_id, recorded_at, batch || '.' || position AS step, kind, succeeded, "
                "attempt, cost, lease_generation, worker FROM journal "
                "WHERE run_id = ANY (%s) ORDER BY run_id, batch, position",
                [self._runs],
            )
        return _since(
            began,
            [
                *self._seen,
                *(_taken("owned", row, "at", "event") for row in owned),
                *(_taken("recorded", row, "recorded_at", "step") for row in journal),
            ],
        )

    async def stale_commit(self, call: Mapping[str, Any], step: Visit) -> str:
        from hand_rolled.database import Database
        from hand_rolled.journal import Entry, Journal, Place
        from hand_rolled.lease import Lease, LeaseLost, clock
        from hand_rolled.settings import read_settings

        settings = read_settings({"DATABASE_URL": self._url})
        lease = Lease(call["run"], call["fence"][0], call["worker"], trusted_until=clock() + 60)
        batch, position = map(int, call["key"].split("."))
        entry = Entry(
            kind="visit",
            fingerprint=fingerprint(step),
            outcome=dump_outcome(step, Succeeded(value=Stay(place=step.place))),
            succeeded=True,
            attempt=1,
        )
        async with Database(settings, application="stale").opened() as database:
            journal = Journal(database, lease, call["worker"])
            try:
                await journal.record(Place(batch, position), entry)
            except LeaseLost as refused:
                return f"LeaseLost: {refused}"
        return "accepted"

    async def _connect(self) -> psycopg.AsyncConnection[dict[str, Any]]:
        return await psycopg.AsyncConnection.connect(
            self._url, autocommit=True, row_factory=dict_row
        )


async def _rows(
    connection: psycopg.AsyncConnection[dict[str, Any]], query: str, values: list[Any]
) -> list[dict[str, Any]]:
    cursor = await connection.execute(query.encode(), values)
    return await cursor.fetchall()


def _taken(kind: Kind, row: dict[str, Any], at: str, what: str) -> Moment:
    return moment(kind, row.pop(at).timestamp(), row.pop("run_id"), str(row.pop(what)), row)


def _since(began: float, moments: list[Moment]) -> list[Moment]:
    shifted = [
        m.model_copy(
            update={
                "t": round(m.t - began, 3),
                "data": {
                    key: round(value - began, 3)
                    if key.endswith("_at") and isinstance(value, float)
                    else value
                    for key, value in m.data.items()
                },
            }
        )
        for m in moments
    ]
    return sorted(shifted, key=lambda m: m.t)


class HistoryObserver:
    """Pending activities as `describe` shows them, and the events of history."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._runs: list[str] = []
        self._last: dict[tuple[str, str], dict[str, Any]] = {}
        self._unfit: set[str] = set()
        self._seen: list[Moment] = []

    @asynccontextmanager
    async def looking(self) -> AsyncIterator[HistoryObserver]:
        """Look while the body runs."""
        task = asyncio.create_task(self._look())
        try:
            yield self
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def watch(self, run_id: str) -> None:
        self._runs.append(run_id)

    async def _look(self) -> None:
        while True:
            for run in tuple(self._runs):
                try:
                    found = await self._client.get_workflow_handle(run).describe()
                except RPCError:
                    continue  # not started yet
                for activity in found.raw_description.pending_activities:
                    self._note(run, activity)
                # The server shows the attempts of a workflow task only while they fail.
                if found.raw_description.pending_workflow_task.attempt > 1:
                    self._unfit.add(run)
            await asyncio.sleep(LOOK)

    def _note(self, run: str, activity: Any) -> None:
        from temporalio.api.enums.v1 import PendingActivityState

        now = datetime.now().astimezone()
        key = (run, activity.activity_id)
        data: dict[str, Any] = {
            "state": PendingActivityState.Name(activity.state).removeprefix(
                "PENDING_ACTIVITY_STATE_"
            ),
            "attempt": activity.attempt,
            "worker": activity.last_worker_identity,
        }
        if activity.HasField("last_heartbeat_time"):
            data["heartbeat_at"] = activity.last_heartbeat_time.ToDatetime(tzinfo=now.tzinfo)
        if activity.HasField("last_failure"):
            data["last_failure"] = activity.last_failure.message
        if self._last.get(key) != data:
            self._last[key] = data
            step = activity.activity_id.partition(":")[0]
            self._seen.append(moment("pending", now.timestamp(), run, step, data))

    @asynccontextmanager
    async def held(self, run_id: str) -> AsyncIterator[None]:
        yield

    async def claims(self, run_id: str) -> int:
        history = self._client.get_workflow_handle(run_id).fetch_history_events()
        return sum(
            [
                event.activity_task_started_event_attributes.attempt
                async for event in history
                if event.HasField("activity_task_started_event_attributes")
            ]
        )

    def renewals(self, run_id: str) -> int:
        beats = {m.data.get("heartbeat_at") for m in self._seen if m.run == run_id}
        return len(beats - {None})

    def mismatches(self, run_id: str) -> bool:
        return run_id in self._unfit

    async def moments(self, began: float) -> list[Moment]:
        from temporalio.api.enums.v1 import EventType

        events = []
        for run in self._runs:
            async for event in self._client.get_workflow_handle(run).fetch_history_events():
                name = EventType.Name(event.event_type).removeprefix("EVENT_TYPE_")
                if name in UNEVENTFUL:
                    continue
                at = event.event_time.ToNanoseconds() / 1e9
                events.append(moment("event", at, run, name, _attributes(event)))
        return _since(began, [*self._seen, *events])

    async def stale_commit(self, call: Mapping[str, Any], step: Visit) -> str:
        token = base64.b64decode(call["token"])
        handle = self._client.get_async_activity_handle(task_token=token)
        try:
            await handle.complete({"value": {"place": step.place, "price": 0}, "cost": 0})
        except RPCError as refused:
            return f"{refused.status.name}: {refused.message}"
        return "accepted"


def _attributes(event: Any) -> dict[str, Any]:
    """What of an event's attributes tells the story; payloads are left out."""
    attributes = getattr(event, event.WhichOneof("attributes"))
    found: dict[str, Any] = {"event_id": event.event_id}
    for name in ("attempt", "identity", "activity_id", "scheduled_event_id", "signal_name"):
        value = getattr(attributes, name, None)
        if value:
            found[name] = value.partition(":")[0] if name == "activity_id" else value
    for name in ("last_failure", "failure"):
        if getattr(attributes, name, None) and attributes.HasField(name):
            found[name] = getattr(attributes, name).message
    return found
