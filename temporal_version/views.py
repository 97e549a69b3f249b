"""What Temporal knows about a run, told in the words of the protocol.

The four questions of the story, and where their answers come from. No table of our own:

    which runs are ready?        `describe`: a workflow task or an activity waits for a worker
    who owns the run?            `describe`: the identity that the started activity was given to
    until when?                  its last heartbeat, or its start, plus the heartbeat timeout
    how does it come back?       the server's timer and the retry policy; see `recovery`

`describe` reads the server's mutable state and is exact. Lists come from visibility, which lags.
What Temporal does not have, we do not make up: between two steps nobody owns a run, a step that
was taken by a worker which then died still shows that worker until the timeout, and a run is
`suspended` only while an operator has paused one of its activities.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp
from pydantic import JsonValue
from temporalio.api.enums.v1 import PendingActivityState, PendingWorkflowTaskState
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import (
    WorkflowExecution,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
)

from temporal_version.messages import COST, KIND, STATE, TENANT, fence
from two_workers.protocol import Run, RunState, RunView

FINAL = {
    WorkflowExecutionStatus.COMPLETED: RunState.SUCCEEDED,
    WorkflowExecutionStatus.FAILED: RunState.FAILED,
    WorkflowExecutionStatus.TIMED_OUT: RunState.FAILED,
    WorkflowExecutionStatus.CANCELED: RunState.CANCELLED,
    WorkflowExecutionStatus.TERMINATED: RunState.CANCELLED,  # an operator's cancel by force
}

QUERIES = {
    RunState.SUCCEEDED: "ExecutionStatus = 'Completed'",
    RunState.FAILED: "ExecutionStatus IN ('Failed', 'TimedOut')",
    RunState.CANCELLED: "ExecutionStatus IN ('Canceled', 'Terminated')",
}

NOBODY = "nobody owns it: its next task goes to whichever worker polls first"


def query(state: RunState | None, tenant: str | None, kind: str | None, run_type: str) -> str:
    """A visibility query for runs."""
    terms = [f"WorkflowType = '{run_type}'", "ExecutionStatus != 'ContinuedAsNew'"]
    if state is not None:
        running = f"ExecutionStatus = 'Running' AND {STATE.name} = '{state}'"
        terms.append(QUERIES.get(state, running))
    for key, value in ((TENANT, tenant), (KIND, kind)):
        if value is not None:
            quoted = value.replace("\\", "\\\\").replace("'", "\\'")
            terms.append(f"{key.name} = '{quoted}'")
    return " AND ".join(terms)


def just_started(run: Run, *, created_at: datetime, native: Mapping[str, JsonValue]) -> RunView:
    """A run as the server has acknowledged it: recorded, and ready for whichever worker polls."""
    return RunView(
        run_id=run.run_id,
        kind=run.kind,
        tenant=run.tenant,
        state=RunState.PENDING,
        created_at=created_at,
        budget=run.budget,
        recovery=NOBODY,
        native=native,
    )


def from_list(found: WorkflowExecution, *, created_at: datetime) -> RunView:
    """A run as visibility shows it: state and cost as last upserted, nothing about owners."""
    attributes = found.typed_search_attributes
    status = found.status or WorkflowExecutionStatus.RUNNING
    return RunView(
        run_id=found.id,
        kind=attributes.get(KIND) or "",
        tenant=attributes.get(TENANT) or "",
        state=FINAL.get(status) or RunState(attributes.get(STATE) or RunState.PENDING),
        created_at=created_at,
        closed_at=found.close_time,
        cost=attributes.get(COST) or 0,
        native={"run_id": found.run_id, "task_queue": found.task_queue},
    )


@dataclass(frozen=True)
class Ownership:
    """Who has a run now: the worker of the step that started last. `native` lists all steps."""

    owner: str
    fence: tuple[int, ...]
    until: datetime


def from_description(
    found: WorkflowExecutionDescription,
    *,
    created_at: datetime,
    budget: int | None,
    failure: str | None,
    heartbeat_timeout: float,
) -> RunView:
    """A run as the server itself sees it now."""
    raw = found.raw_description
    view = from_list(found, created_at=created_at)
    extended = raw.workflow_extended_info
    final = view.state.is_final
    owned = None if final else _ownership(raw.pending_activities, heartbeat_timeout)
    return view.model_copy(
        update={
            "state": view.state if final else _state(found, view.state),
            "cancel_requested": extended.cancel_requested,
            "failure": failure,
            "budget": budget,
            "owner": owned and owned.owner,
            "fence": owned and owned.fence,
            "owned_until": owned and owned.until,
            "recovery": None if final else _recovery(owned, heartbeat_timeout),
            "native": {
                **view.native,
                "status": found.status.name if found.status else None,
                "history_events": found.history_length,
                "history_bytes": found.raw_info.history_size_bytes,
                "pending_activities": [_pending(a) for a in raw.pending_activities],
            },
        }
    )


def _state(found: WorkflowExecutionDescription, shown: RunState) -> RunState:
    raw = found.raw_description
    activities = raw.pending_activities
    task = raw.pending_workflow_task if raw.HasField("pending_workflow_task") else None
    driven = task and task.state == PendingWorkflowTaskState.PENDING_WORKFLOW_TASK_STATE_STARTED
    if driven or any(_is_started(a) for a in activities):
        return RunState.RUNNING
    if task or any(_is_due(a) for a in activities):
        return RunState.PENDING  # ready: the next worker that polls takes it
    if any(a.paused for a in activities):
        return RunState.SUSPENDED  # `temporal activity pause`
    if activities:
        return RunState.SCHEDULED  # backing off
    # Nothing is pending: it waits for a timer, a signal or the gate, as it said when it parked. A
    # batch that mixed waits with work said `running`; the work is done, so a wait is left.
    return RunState.WAITING if shown is RunState.RUNNING else shown


def _ownership(activities: Any, heartbeat_timeout: float) -> Ownership | None:
    started = [a for a in activities if _is_started(a)]
    if not started:
        return None
    last = max(started, key=lambda a: _time(a.last_started_time))
    alive = max(_time(last.last_started_time), _time(last.last_heartbeat_time))
    timeout = last.activity_options.heartbeat_timeout.ToTimedelta() or timedelta(
        seconds=heartbeat_timeout
    )
    return Ownership(
        owner=last.last_worker_identity,
        fence=fence(_time(last.last_started_time), last.attempt),
        until=alive + timeout,
    )


def _recovery(owned: Ownership | None, heartbeat_timeout: float) -> str:
    if owned is None:
        return NOBODY
    return (
        f"if {owned.owner} is silent until {owned.until.isoformat(timespec='milliseconds')} "
        f"(heartbeat timeout {heartbeat_timeout} s), the server's timer fails the attempt and the "
        "retry policy schedules the next one for any worker"
    )


def _pending(activity: PendingActivityInfo) -> dict[str, Any]:
    return {
        "id": activity.activity_id,
        "state": PendingActivityState.Name(activity.state).removeprefix("PENDING_ACTIVITY_STATE_"),
        "attempt": activity.attempt,
        "worker": activity.last_worker_identity,
        "last_failure": activity.last_failure.message,
    }


def _is_started(activity: PendingActivityInfo) -> bool:
    return activity.state in (
        PendingActivityState.PENDING_ACTIVITY_STATE_STARTED,
        PendingActivityState.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED,
        PendingActivityState.PENDING_ACTIVITY_STATE_PAUSE_REQUESTED,
    )


def _is_due(activity: PendingActivityInfo) -> bool:
    waiting = activity.state == PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED
    return waiting and _time(activity.next_attempt_schedule_time) <= datetime.now(UTC)


def _time(stamp: Timestamp) -> datetime:
    return stamp.ToDatetime(tzinfo=UTC)
