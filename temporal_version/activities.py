"""Effects as activities: one attempt of one step, from claim to result.

What Temporal does not know is decided here, and travels to the next attempt in the heartbeat
details (`Tries`), which a failed attempt carries home atomically:

- an effect's own failures count against its retry policy; a lost worker does not;
- `RetryLater` and an orderly stop of the worker are excused. Temporal still counts them as
  attempts, which one sees in its UI and in `Call.attempt`, but nothing is decided by that;
- a step that lost more workers than `max_losses` is poison, and fails.

Details that were not sent yet die with a worker. So after a kill, `failures` may be too small by
what happened since the last heartbeat left: a failing step then gets a further try.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pydantic import ValidationError
from temporalio import activity
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import ResetStickyTaskQueueRequest
from temporalio.client import WorkflowHandle, WorkflowQueryFailedError
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.service import RPCError

from temporal_version.heartbeat import Pulse
from temporal_version.messages import (
    MESSAGE_LIMIT,
    PAYLOAD_LIMIT,
    StepCall,
    StepResult,
    Tries,
    fence,
)
from temporal_version.settings import Settings
from two_workers.apps import App, Call, Effect
from two_workers.errors import PermanentFailure, RetryLater
from two_workers.steps import Step, result_adapter

AT_ONCE = timedelta(milliseconds=1)
SOON = timedelta(seconds=0.5)
"""A first attempt that starts within this after it was scheduled needs no further question."""


@dataclass(frozen=True)
class Attempt:
    """Carries out the attempts of one step type in one worker."""

    step_type: type[Step[Any]]
    effect: Effect
    settings: Settings
    worker_id: str
    resources: Any

    async def __call__(self, asked: StepCall) -> StepResult:
        """Perform the step once. Every way out says what the next attempt may do."""
        info = activity.info()
        tries = (
            Tries.model_validate(info.heartbeat_details[0]) if info.heartbeat_details else Tries()
        )
        self._refuse_poison(tries, info.attempt)
        pulse = Pulse(
            tries,
            interval=self.settings.beat_interval,
            progress_timeout=self.settings.progress_timeout,
        )
        try:
            async with pulse.running():
                return await self._perform(asked, pulse)
        except RetryLater as error:
            raise self._excused(pulse, error, timedelta(seconds=error.after)) from error
        except asyncio.CancelledError as error:
            details = activity.cancellation_details()
            if details and details.worker_shutdown:
                raise self._excused(pulse, error, AT_ONCE) from error
            raise
        except Exception as error:  # whatever the effect raises is its failure
            raise self._failed(pulse, error) from error

    async def _perform(self, asked: StepCall, pulse: Pulse) -> StepResult:
        await self._refuse_cancelled(activity.info())
        step = await self._step(asked)
        call = Call(
            run_id=str(activity.info().workflow_id),
            key=asked.key,
            fence=fence(activity.info().started_time, activity.info().attempt),
            attempt=activity.info().attempt,
            engine="temporal",
            worker=self.worker_id,
            resources=self.resources,
            beat=pulse.beat,
            checkpoint=pulse.tries.checkpoint,
        )
        try:
            async with asyncio.timeout(self.effect.timeout) as limit:
                value = await self._run(step, call)
        except TimeoutError as error:
            if not limit.expired():
                raise  # the effect's own
            raise TimeoutError(f"no result in {self.effect.timeout} s") from error
        adapter = result_adapter(self.step_type)
        result = adapter.validate_python(value)
        cost = self.effect.cost(result) if self.effect.cost else 0
        size = len(adapter.dump_json(result))
        if size > PAYLOAD_LIMIT and self.settings.payload_store is None:
            raise PermanentFailure(
                f"a result of {size} bytes is over Temporal's limit for one payload; "
                "return a reference to it, or set TEMPORAL_VERSION_PAYLOAD_STORE"
            )
        return StepResult(value=adapter.dump_python(result, mode="json"), cost=cost)

    async def _run(self, step: Step[Any], call: Call) -> Any:
        """The effect. An uninterruptible one ends as it will, unless the step is no longer ours.

        A cancelled run does not cancel such an activity (`step_call.py`), so what arrives here is
        a stopping worker, which waits, or the loss of the step.
        """
        work = asyncio.ensure_future(self.effect.run(step, call))
        if not self.effect.uninterruptible:
            return await work
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            details = activity.cancellation_details()
            if details is None or not details.worker_shutdown:
                work.cancel()
            return await work

    async def _refuse_cancelled(self, info: activity.Info) -> None:
        """A repeated or belated attempt first asks whether its run is to end.

        The server dispatches it when a timer fires or a worker comes back, and may do so after it
        accepted a request to cancel and before a workflow task has told the activity: work would
        be resumed that nobody wants. An uninterruptible step is carried to its end in any case.
        """
        late = info.started_time - info.current_attempt_scheduled_time > SOON
        if self.effect.uninterruptible or not (info.attempt > 1 or late):
            return
        try:
            run = (await _own_run().describe()).raw_description
        except RPCError as error:
            raise RetryLater(f"asking whether the run is cancelled: {error}", after=0.5) from error
        if run.workflow_extended_info.cancel_requested:
            raise RetryLater("the run is being cancelled", after=0.5)

    async def _step(self, asked: StepCall) -> Step[Any]:
        document = asked.step
        if document is None:
            try:
                if activity.info().attempt > 1:
                    await _forget_whose_cache_it_is_in()
                document = await _own_run().query("step", asked.key)
            except (RPCError, WorkflowQueryFailedError) as error:
                raise RetryLater(f"asking for step {asked.key}: {error}", after=0.5) from error
        try:
            return self.step_type.model_validate(document)
        except ValidationError as error:
            raise RetryLater(f"this worker's code does not fit: {error}", after=5.0) from error

    def _refuse_poison(self, tries: Tries, attempt: int) -> None:
        losses = attempt - 1 - tries.failures - tries.excused
        if losses > self.settings.max_losses:
            raise ApplicationError(
                f"the step lost {losses} workers, more than max_losses={self.settings.max_losses}",
                max(1, tries.failures),
                type="WorkerLost",
                non_retryable=True,
            )

    def _excused(self, pulse: Pulse, error: BaseException, delay: timedelta) -> ApplicationError:
        pulse.tries = pulse.tries.model_copy(update={"excused": pulse.tries.excused + 1})
        pulse.send()
        return ApplicationError(
            str(error)[:MESSAGE_LIMIT] or "handed over by a worker that stops",
            type=type(error).__name__,
            category=ApplicationErrorCategory.BENIGN,  # no failure in logs and metrics either
            next_retry_delay=max(delay, AT_ONCE),
        )

    def _failed(self, pulse: Pulse, error: Exception) -> ApplicationError:
        failures = pulse.tries.failures + 1
        pulse.tries = pulse.tries.model_copy(update={"failures": failures})
        pulse.send()
        retry = self.effect.retry
        delay = retry.delay(failures) * random.uniform(0.8, 1.2)
        return ApplicationError(
            str(error)[:MESSAGE_LIMIT],
            failures,
            type=type(error).__name__,
            non_retryable=isinstance(error, PermanentFailure) or failures >= retry.max_attempts,
            next_retry_delay=max(timedelta(seconds=delay), AT_ONCE),
        )


def activities(
    app: App, settings: Settings, *, worker_id: str, resources: Any
) -> list[Callable[..., Any]]:
    """The activities of an app, named by the kind of their step."""
    return [
        _named(step_type.kind, Attempt(step_type, effect, settings, worker_id, resources))
        for step_type, effect in app.effects.items()
    ]


def _named(name: str, attempt: Attempt) -> Callable[..., Any]:
    @activity.defn(name=name)
    async def perform(asked: StepCall) -> StepResult:
        return await attempt(asked)

    return perform


async def _forget_whose_cache_it_is_in() -> None:
    """Let any worker answer for this run.

    The server sends a query to the worker that has the run in its cache. Where the attempt before
    was lost with that worker, the query would wait for it, `sticky_timeout` long.
    """
    client, info = activity.client(), activity.info()
    await client.workflow_service.reset_sticky_task_queue(
        ResetStickyTaskQueueRequest(
            namespace=client.namespace,
            execution=WorkflowExecution(
                workflow_id=str(info.workflow_id), run_id=info.workflow_run_id or ""
            ),
        )
    )


def _own_run() -> WorkflowHandle[Any, Any]:
    info = activity.info()
    return activity.client().get_workflow_handle(str(info.workflow_id), run_id=info.workflow_run_id)
