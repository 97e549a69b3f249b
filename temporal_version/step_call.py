"""One step of a batch, inside the workflow: a timer, a signal, or an activity."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception
from temporalio.workflow import ActivityCancellationType

from temporal_version.messages import PAYLOAD_LIMIT, StepCall, StepResult
from temporal_version.progress import Progress
from two_workers.errors import AgentError
from two_workers.steps import (
    Failed,
    Sleep,
    Step,
    Succeeded,
    WaitForSignal,
    fingerprint,
    result_adapter,
)


async def perform(progress: Progress, position: int, step: Step[Any]) -> Succeeded | Failed:
    """Perform one step and return its outcome. A cancelled run ends it with `CancelledError`."""
    match step:
        case Sleep():
            await workflow.sleep(step.seconds)
            return Succeeded(value=None)
        case WaitForSignal():
            return Succeeded(value=await progress.inbox.take(step.name))
        case _:
            return await _call_effect(progress, f"{progress.batch}.{position}", step)


async def _call_effect(progress: Progress, key: str, step: Step[Any]) -> Succeeded | Failed:
    effect = progress.app.effect(step)
    async with progress.places, progress.permits.pool(effect.pool, key):
        activity = _start(progress, key, step)
        try:
            result = await _settled(activity, shield=effect.uninterruptible)
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            return _failed(error)
    progress.cost += result.cost
    return Succeeded(value=result_adapter(type(step)).validate_python(result.value))


def _start(progress: Progress, key: str, step: Step[Any]) -> workflow.ActivityHandle[StepResult]:
    effect, settings = progress.app.effect(step), progress.app.settings
    run_id = workflow.info().workflow_id
    call = StepCall(key=f"{run_id}/{key}", step=step.model_dump(mode="json"))
    size = len(step.model_dump_json())
    if size > PAYLOAD_LIMIT and settings.payload_store is None:
        raise AgentError(
            f"step {step.kind} of {size} bytes is over Temporal's limit for one payload; "
            "shorten it, or set TEMPORAL_VERSION_PAYLOAD_STORE"
        )
    if size > settings.reference_above:
        # A transcript as the argument of each call makes history quadratic. The workflow has it
        # already, and after a replay it has it again: the activity asks (query `step`).
        progress.by_reference[call.key] = call.step
        call = StepCall(key=call.key)
    return workflow.start_activity(
        step.kind,
        call,
        activity_id=f"{key}:{fingerprint(step)}",
        result_type=StepResult,
        # The effect's own timeout is kept by the activity, which counts it as a failure. These
        # three only decide when a worker has lost the step.
        heartbeat_timeout=timedelta(seconds=settings.heartbeat_timeout),
        start_to_close_timeout=timedelta(seconds=effect.timeout + settings.heartbeat_timeout),
        schedule_to_close_timeout=timedelta(seconds=settings.step_deadline),
        retry_policy=RetryPolicy(
            initial_interval=timedelta(seconds=settings.retry_initial),
            backoff_coefficient=settings.retry_backoff,
            maximum_attempts=0,  # the activity counts: losing a worker is not the step's error
        ),
        cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED
        if settings.wait_for_cancellation
        else ActivityCancellationType.TRY_CANCEL,
    )


async def _settled(activity: workflow.ActivityHandle[StepResult], *, shield: bool) -> StepResult:
    """The activity's result. With `shield`, a cancel of the run waits for it and says nothing."""
    if not shield:
        return await activity
    try:
        return await asyncio.shield(activity)
    except asyncio.CancelledError:
        return await activity


def _failed(error: ActivityError) -> Failed:
    cause = error.cause
    if isinstance(cause, ApplicationError):
        attempts = cause.details[0] if cause.details else 1
        return Failed(error=cause.type or "Error", message=cause.message, attempts=attempts)
    last = f": {cause.__cause__}" if cause is not None and cause.__cause__ else ""
    return Failed(error=type(cause).__name__, message=f"{cause}{last}", attempts=1)
