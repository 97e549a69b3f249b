"""Temporal's side: pending activities as `describe` shows them, and the events of history."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

from temporalio.api.enums.v1 import EventType, PendingActivityState
from temporalio.client import Client
from temporalio.service import RPCError

from comparison.mapping.recording import Moment
from comparison.mapping.scenarios.watch import LOOK, Watching, moment, since
from comparison.mapping.tour.steps import Visit

UNEVENTFUL = (
    "WORKFLOW_TASK_SCHEDULED", "WORKFLOW_TASK_STARTED", "WORKFLOW_TASK_COMPLETED",
    "UPSERT_WORKFLOW_SEARCH_ATTRIBUTES",
)  # fmt: skip
"""Events that are left out of a recording: they surround each of the others."""


class HistoryObserver(Watching):
    """Pending activities as `describe` shows them, and the events of history."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        self._client = client
        self._last: dict[tuple[str, str], dict[str, Any]] = {}
        self._unfit: set[str] = set()

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
        events = []
        for run in self._runs:
            async for event in self._client.get_workflow_handle(run).fetch_history_events():
                name = EventType.Name(event.event_type).removeprefix("EVENT_TYPE_")
                if name in UNEVENTFUL:
                    continue
                at = event.event_time.ToNanoseconds() / 1e9
                events.append(moment("event", at, run, name, _attributes(event)))
        return since(began, [*self._seen, *events])

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
