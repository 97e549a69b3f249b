"""The driver: the same loop as `hand_rolled/handler.py`, inside a workflow.

There, a worker claims a run, performs each batch under its lease and journals the outcomes. Here,
Temporal's history is the journal and a workflow task is the claim on the run; each effect is an
activity, and the activity task is the claim on the step:

    claim       a task is handed to exactly one of the workers that poll
    lease       `heartbeat_timeout`, counted from the last heartbeat that arrived
    heartbeat   `activity.heartbeat`, throttled; carries the checkpoint
    reclaim     the server's timer, then the retry policy, then whichever worker polls
    generation  (start time, attempt) of the activity; the server refuses an older one's result

On replay the agent is advanced again from its beginning, with the outcomes of history. An
activity's id holds the step's fingerprint, so an agent that now asks for something else fails the
workflow *task* (Temporal's nondeterminism error): the run waits for a worker whose code fits.
Whatever the agent itself raises fails the *run*.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from pydantic import JsonValue
from temporalio import workflow
from temporalio.exceptions import ApplicationError

from temporal_version.handlers import Handlers
from temporal_version.messages import MESSAGE_LIMIT, RUN_TYPE, RunInput, Signal
from temporal_version.progress import Progress, end, stop_if_cancelled
from temporal_version.registry import registered
from temporal_version.step_call import perform
from two_workers.errors import ReplayMismatch
from two_workers.steps import Done, Failed, Plan, Step, Succeeded, advance


@workflow.defn(name=RUN_TYPE)
class AgentRun(Handlers):
    """One run of one agent."""

    @workflow.init
    def __init__(self, run: RunInput) -> None:
        self.progress = Progress(run)

    @workflow.run
    async def run(self, run: RunInput) -> JsonValue:
        """Drive the agent to its end and return its result as JSON."""
        app = registered(run.kind).load()
        try:
            async with self.progress.permits.active():
                result = app.dump_result(await self._drive(app.plan(run.payload)))
                return self.progress.fitting(result)
        except ReplayMismatch:
            raise  # fails this task only: the run waits for the code that fits
        except Exception as error:  # whatever the agent raises fails the run
            stop_if_cancelled()
            failure = ApplicationError(str(error)[:MESSAGE_LIMIT], type=type(error).__name__)
            raise failure.with_traceback(error.__traceback__) from None

    async def _drive(self, plan: Plan) -> Any:
        try:
            request = advance(plan, None)
            while not isinstance(request, Done):
                stop_if_cancelled()
                outcomes = self.progress.recorded(request.steps)
                if outcomes is None:
                    outcomes = await self._batch(request.steps)
                    await self.progress.record(request.steps, outcomes)
                request = advance(plan, outcomes)
            stop_if_cancelled()
            return request.value
        except asyncio.CancelledError:
            self.progress.show_cost()
            raise
        finally:
            end(plan)

    async def _batch(self, steps: Sequence[Step[Any]]) -> list[Succeeded | Failed]:
        """All steps of a batch at the same time. Ends when the last of them has."""
        self.progress.begin(steps)
        # Not a TaskGroup: it cancels its tasks in the order of a set, which is another one on
        # replay. `gather` goes by position, and with return_exceptions it waits for all.
        results = await asyncio.gather(
            *(perform(self.progress, i, step) for i, step in enumerate(steps)),
            return_exceptions=True,
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return [result for result in results if not isinstance(result, BaseException)]

    @workflow.signal(name="deliver")
    def deliver(self, signal: Signal) -> None:
        """A signal for the agent."""
        self.progress.inbox.deliver(signal)
