"""What Temporal Cloud would bill of a run, counted from its history.

By https://docs.temporal.io/evaluate/cloud/actions, as read on 29 November 2026 (commit 24afc58a of
github.com/temporalio/documentation). A history does not show heartbeats and queries, each of which
is billed when it reaches the server; those are counted by the server's own metric (`meters`). Nor
does it show the earlier attempts of an activity that was still being retried when its run ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

RETRY = "retry activity"

BILLED: dict[int, tuple[str, int]] = {
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED: ("start workflow", 1),
    EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED: ("schedule activity", 1),
    EventType.EVENT_TYPE_TIMER_STARTED: ("start timer", 1),
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED: ("signal workflow", 1),
    EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES: ("upsert search attributes", 1),
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED: ("update workflow", 1),
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED: ("update options", 1),
    # One for recording the intent and one for the attempt.
    EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED: ("start child workflow", 2),
}


def billed(history: Iterable[HistoryEvent]) -> dict[str, int]:
    """The actions of one history, by kind. A first attempt is part of its scheduling."""
    found: Counter[str] = Counter()
    for event in history:
        if event.event_type in BILLED:
            kind, actions = BILLED[event.event_type]
            found[kind] += actions
        elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED:
            retries = event.activity_task_started_event_attributes.attempt - 1
            if retries:
                found[RETRY] += retries
    return dict(found)
