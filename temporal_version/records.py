"""The recorded steps of a run, read from its history.

Timers and signals are events of other types and no steps here: their keys stay unused.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC
from typing import Any

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

from two_workers.protocol import StepRecord


async def records(run_id: str, events: AsyncIterator[HistoryEvent]) -> list[StepRecord]:
    """Activities that ended, in the order of their keys. One that was cancelled has no record."""
    scheduled: dict[int, Any] = {}
    started: dict[int, Any] = {}
    found: list[StepRecord] = []
    async for event in events:
        match event.event_type:
            case EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
                scheduled[event.event_id] = event.activity_task_scheduled_event_attributes
            case EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED:
                started[event.event_id] = event.activity_task_started_event_attributes
            case EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
                ended: Any = event.activity_task_completed_event_attributes
                found.append(_record(run_id, event, "succeeded", ended, scheduled, started))
            case EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED:
                ended = event.activity_task_failed_event_attributes
                found.append(_record(run_id, event, "failed", ended, scheduled, started))
            case EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
                ended = event.activity_task_timed_out_event_attributes
                found.append(_record(run_id, event, "failed", ended, scheduled, started))
            case _:
                pass
    return sorted(found, key=lambda record: _order(record.key))


def _record(
    run_id: str,
    event: HistoryEvent,
    outcome: str,
    ended: Any,
    scheduled: dict[int, Any],
    started: dict[int, Any],
) -> StepRecord:
    asked = scheduled[ended.scheduled_event_id]
    taken = started.get(ended.started_event_id)
    return StepRecord(
        key=f"{run_id}/{asked.activity_id.partition(':')[0]}",
        kind=asked.activity_type.name,
        outcome=outcome,
        attempt=taken.attempt if taken else 0,
        worker=taken.identity if taken else None,
        recorded_at=event.event_time.ToDatetime(tzinfo=UTC),
    )


def _order(key: str) -> tuple[int, int]:
    batch, _, position = key.rpartition("/")[2].partition(".")
    return int(batch), int(position)
