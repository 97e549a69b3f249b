"""The client: seven methods for runs and two for limits, each one or two calls to Temporal.

A run is a workflow whose id is the run's id. That is the whole of idempotent start: the server
refuses a second workflow with the id, also after the first has closed (within the namespace's
retention), and a digest in the first one's memo tells the same run from another.

The memo holds when the run was created, too, by the clock of whoever started it. So `start` can
tell what it did without asking the server once more, and a run that continued as new, whose start
the server forgets, still knows it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta

from pydantic import JsonValue
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import (
    Client,
    WorkflowExecution,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
)
from temporalio.common import (
    Priority,
    SearchAttributePair,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
)
from temporalio.exceptions import (
    ApplicationError,
    CancelledError,
    TerminatedError,
    WorkflowAlreadyStartedError,
)
from temporalio.service import RPCError, RPCStatusCode

from temporal_version import views
from temporal_version.client import reachable
from temporal_version.limits import Belief, read_limits, replace_limits
from temporal_version.messages import COST, KIND, RUN_TYPE, STATE, TENANT, RunInput, Signal
from temporal_version.records import records
from temporal_version.settings import Settings
from two_workers.errors import (
    BadInput,
    RunCancelled,
    RunClosed,
    RunConflict,
    RunFailed,
    RunNotFound,
)
from two_workers.protocol import Limits, Run, RunState, RunView, StepRecord

REMEMBERED = 10_000
"""Runs that a client remembers as runs of ours, and need not ask about before each call."""


class TemporalEngine:
    """Implements `two_workers.Engine`."""

    name = "temporal"

    def __init__(self, client: Client, settings: Settings) -> None:
        self.client = client
        self._settings = settings
        self._belief = Belief(client, settings)
        self._met: dict[str, None] = {}  # in the order of meeting

    async def start(self, run: Run) -> RunView:
        """Start a run. Raises `RunConflict`."""
        with reachable():
            started = await self._start(run)
        return started or await self.get(run.run_id)

    async def _start(self, run: Run) -> RunView | None:
        """Start a run and return it; None if it was there already."""
        digest, created_at = _digest(run), datetime.now(UTC)
        gate = await self._belief.gate()
        queue = self._settings.queue(run.kind)
        try:
            handle = await self.client.start_workflow(
                RUN_TYPE,
                RunInput(
                    kind=run.kind,
                    payload=run.payload,
                    tenant=run.tenant,
                    budget=run.budget,
                    gate=gate,
                ),
                id=run.run_id,
                task_queue=queue,
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                task_timeout=timedelta(seconds=self._settings.workflow_task_timeout),
                memo={"digest": digest, "budget": run.budget, "created_at": created_at},
                search_attributes=_attributes(run),
                priority=Priority(priority_key=run.priority, fairness_key=run.tenant),
            )
        except WorkflowAlreadyStartedError:
            existing = await self._handle(run.run_id).describe()
            if await existing.memo_value("digest", default=None) != digest:
                raise RunConflict(run.run_id) from None
            return None
        except RPCError as error:
            if error.status is not RPCStatusCode.INVALID_ARGUMENT:
                raise
            raise BadInput(f"run {run.run_id!r}: the server refuses it: {error}") from error
        self._remember(run.run_id)
        native = {"run_id": handle.result_run_id, "task_queue": queue}
        return views.just_started(run, created_at=created_at, native=native)

    async def get(self, run_id: str) -> RunView:
        """One run, from the server's own state. Raises `RunNotFound`."""
        found = await self._describe(run_id)
        failed = found.status in (WorkflowExecutionStatus.FAILED, WorkflowExecutionStatus.TIMED_OUT)
        return views.from_description(
            found,
            created_at=await _created_at(found),
            budget=await found.memo_value("budget", default=None),
            failure=await self._failure(found) if failed else None,
            heartbeat_timeout=self._settings.heartbeat_timeout,
        )

    async def list_runs(
        self,
        *,
        state: RunState | None = None,
        tenant: str | None = None,
        kind: str | None = None,
        limit: int = 100,
    ) -> Sequence[RunView]:
        """Runs, newest first, from visibility: it lags behind `get` by up to a second or so."""
        query = views.query(state, tenant, kind, RUN_TYPE)
        with reachable():
            listed = [each async for each in self.client.list_workflows(query, limit=limit)]
        found = [views.from_list(each, created_at=await _created_at(each)) for each in listed]
        return sorted(found, key=lambda view: view.created_at, reverse=True)

    async def signal(self, run_id: str, name: str, payload: JsonValue, *, signal_id: str) -> None:
        """Deliver a signal. The workflow drops a `signal_id` that it has seen."""
        await self._meet(run_id)
        signal = Signal(signal_id=signal_id, name=name, payload=payload)
        try:
            with reachable():
                await self._handle(run_id).signal("deliver", signal)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                raise RunClosed(run_id, (await self.get(run_id)).state) from error
            if error.status is RPCStatusCode.INVALID_ARGUMENT:
                raise BadInput(f"signal {name!r}: the server refuses it: {error}") from error
            raise

    async def cancel(self, run_id: str, *, reason: str = "") -> RunView:
        """Request cancellation: an event in the run's history, so nobody can resume past it.

        Temporal cannot end a run by itself: a run that no worker has ends when a worker sees the
        request.
        """
        await self._meet(run_id)
        try:
            with reachable():
                await self._handle(run_id).cancel(reason=reason)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:  # it has ended: nothing to cancel
                raise
        return await self.get(run_id)

    async def result(self, run_id: str, *, timeout: float) -> JsonValue:
        """Wait for the end. Raises `RunFailed`, `RunCancelled`, `RunNotFound`, `TimeoutError`."""
        await self._meet(run_id)
        try:
            async with asyncio.timeout(timeout):
                return await self._result(run_id)
        except WorkflowFailureError as error:
            if isinstance(error.cause, CancelledError | TerminatedError):
                raise RunCancelled(run_id) from error
            raise RunFailed(run_id, _readable(error.cause)) from error

    async def steps(self, run_id: str) -> Sequence[StepRecord]:
        """The recorded steps, from history. Raises `RunNotFound`."""
        await self._describe(run_id)
        return await records(run_id, self._events(run_id))

    async def limits(self) -> Limits:
        """The limits in force."""
        with reachable():
            return await read_limits(self.client, self._settings)

    async def set_limits(self, limits: Limits) -> None:
        """Replace the limits."""
        with reachable():
            await replace_limits(self.client, self._settings, limits)

    async def _result(self, run_id: str) -> JsonValue:
        """Wait as long as it takes, also through a restart of the server."""
        while True:
            try:
                value: JsonValue = await self._handle(run_id).result()
            except RPCError as error:
                if error.status is RPCStatusCode.NOT_FOUND:  # its retention ended
                    raise RunNotFound(run_id) from None
                if error.status is not RPCStatusCode.UNAVAILABLE:
                    raise
                await asyncio.sleep(0.5)
            else:
                return value

    def _handle(self, run_id: str) -> WorkflowHandle[object, JsonValue]:
        return self.client.get_workflow_handle(run_id)

    async def _meet(self, run_id: str) -> None:
        """Raises `RunNotFound` for what is no run of ours. Asks the server the first time only."""
        if run_id not in self._met:
            await self._describe(run_id)

    async def _describe(self, run_id: str) -> WorkflowExecutionDescription:
        try:
            with reachable():
                found = await self._handle(run_id).describe()
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                raise RunNotFound(run_id) from None
            raise
        if found.workflow_type != RUN_TYPE:
            raise RunNotFound(run_id)
        self._remember(run_id)
        return found

    def _remember(self, run_id: str) -> None:
        self._met[run_id] = None
        if len(self._met) > REMEMBERED:
            del self._met[next(iter(self._met))]

    async def _events(self, run_id: str) -> AsyncIterator[HistoryEvent]:
        """All events of a run, through every continue-as-new, oldest first."""
        chain: list[list[HistoryEvent]] = []
        earlier: str | None = None
        while True:
            handle = self.client.get_workflow_handle(run_id, run_id=earlier)
            events = [event async for event in handle.fetch_history_events()]
            chain.append(events)
            earlier = events[
                0
            ].workflow_execution_started_event_attributes.continued_execution_run_id
            if not earlier:
                break
        for events in reversed(chain):
            for event in events:
                yield event

    async def _failure(self, found: WorkflowExecutionDescription) -> str:
        """Why a run failed: only its last event says so."""
        handle = self.client.get_workflow_handle(found.id, run_id=found.run_id)
        try:
            await handle.result(follow_runs=False)
        except WorkflowFailureError as error:
            return _readable(error.cause)
        return "unknown"


def _attributes(run: Run) -> TypedSearchAttributes:
    return TypedSearchAttributes(
        [
            SearchAttributePair(TENANT, run.tenant),
            SearchAttributePair(KIND, run.kind),
            SearchAttributePair(STATE, RunState.PENDING.value),
            SearchAttributePair(COST, 0),
        ]
    )


async def _created_at(found: WorkflowExecution) -> datetime:
    """By its starter's clock; by the server's if something else started it."""
    try:
        return await found.memo_value("created_at", default=found.start_time, type_hint=datetime)
    except KeyError:  # encrypted, and this client has no key: lists still tell what is readable
        return found.start_time


def _digest(run: Run) -> str:
    content = run.model_dump(mode="json", exclude={"run_id", "priority"})
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _readable(cause: BaseException | None) -> str:
    if isinstance(cause, ApplicationError):
        return f"{cause.type}: {cause.message}" if cause.type else cause.message
    return f"{type(cause).__name__}: {cause}"
