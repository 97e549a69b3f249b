"""What the driver keeps beside the agent: cost, state, signals, permits, and the way to carry on.

Everything here is rebuilt by replay, so all of it must follow from the workflow's input and its
history alone.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Sequence
from typing import Any

from pydantic import JsonValue
from temporalio import workflow

from temporal_version.messages import (
    COST,
    FAN_OUT,
    PAYLOAD_LIMIT,
    STATE,
    Carried,
    Recorded,
    RunInput,
    Signal,
)
from temporal_version.permits import Permits
from temporal_version.registry import registered
from two_workers.apps import is_wait
from two_workers.errors import AgentError, BudgetExceeded, ReplayMismatch
from two_workers.protocol import RunState
from two_workers.steps import (
    Failed,
    Plan,
    Sleep,
    Step,
    Succeeded,
    WaitForSignal,
    close,
    dump_outcome,
    fingerprint,
    load_outcome,
)

CARRY_LIMIT = 1_000_000
"""Bytes that a run may carry on: well under the server's 2 MB for one payload. Above, a run goes on
in one history, as long as the server allows."""


class Inbox:
    """Signals for the agent: each `signal_id` once, in the order in which the server got them."""

    def __init__(self, carried: Carried) -> None:
        self.seen = dict.fromkeys(carried.seen_signals)
        self.undelivered = deque(carried.undelivered)

    def deliver(self, signal: Signal) -> None:
        if signal.signal_id not in self.seen:
            self.seen[signal.signal_id] = None
            self.undelivered.append(signal)

    def has(self, name: str) -> bool:
        return any(signal.name == name for signal in self.undelivered)

    async def take(self, name: str) -> JsonValue:
        """The payload of the next signal called `name`; waits for it."""
        while not self.has(name):  # two steps of a batch may wait for the same signal
            await workflow.wait_condition(lambda: self.has(name))
        signal = next(signal for signal in self.undelivered if signal.name == name)
        self.undelivered.remove(signal)
        return signal.payload


class Progress:
    """How far a run is."""

    def __init__(self, run: RunInput) -> None:
        self.run = run
        self.app = registered(run.kind)
        self.inbox = Inbox(run.carried)
        self.permits = Permits(run.gate, run.tenant, admitted=run.carried.admitted)
        self.cost = run.carried.cost
        self.batch = 0
        self.places = asyncio.Semaphore(FAN_OUT)
        self.by_reference: dict[str, JsonValue] = {}
        self._journal = list(run.carried.batches)
        self._shown: tuple[str | None, int] = (run.carried.state, run.carried.cost)

    def recorded(self, steps: Sequence[Step[Any]]) -> list[Succeeded | Failed] | None:
        """The outcomes of a batch that was done before the run continued as new, or None."""
        if self.batch >= len(self.run.carried.batches):
            return None
        journalled = self.run.carried.batches[self.batch]
        recorded = [record.fingerprint for record in journalled]
        asked = [fingerprint(step) for step in steps]
        if recorded != asked:
            raise ReplayMismatch(key=f"{self.batch}", recorded=str(recorded), asked=str(asked))
        self.batch += 1
        return [load_outcome(s, r.outcome) for s, r in zip(steps, journalled, strict=True)]

    def begin(self, steps: Sequence[Step[Any]]) -> None:
        """Reserve the worst case of a batch. Raises `BudgetExceeded`; then no step has begun."""
        worst = sum(self._worst_case(step) for step in steps)
        budget = self.run.budget
        if budget is not None and worst and self.cost + worst > budget:
            raise BudgetExceeded(budget=budget, spent=self.cost, worst_case=worst)
        self.show(self._state_during(steps))

    async def record(
        self, steps: Sequence[Step[Any]], outcomes: Sequence[Succeeded | Failed]
    ) -> None:
        """A batch has ended. Continue as new if history is long and all of it can be carried."""
        self.by_reference.clear()
        self._journal.append(
            tuple(
                Recorded(fingerprint=fingerprint(s), outcome=dump_outcome(s, o))
                for s, o in zip(steps, outcomes, strict=True)
            )
        )
        self.batch += 1
        self.show_cost()
        if workflow.info().is_continue_as_new_suggested():
            await self._continue_as_new()

    def fitting(self, result: JsonValue) -> JsonValue:
        """The run's result, if the server will take it. Raises `AgentError`."""
        size = len(json.dumps(result))
        if size > PAYLOAD_LIMIT and self.app.settings.payload_store is None:
            raise AgentError(
                f"a result of {size} bytes is over Temporal's limit for one payload; return a "
                "reference to it, or set TEMPORAL_VERSION_PAYLOAD_STORE"
            )
        return result

    def show_cost(self) -> None:
        """After a batch, or when it was cut short."""
        self.show(self._shown[0])

    def show(self, state: str | None) -> None:
        """Tell visibility about state and cost. One event, and only when one of them changed."""
        if (state, self.cost) == self._shown:
            return
        self._shown = (state, self.cost)
        updates = [COST.value_set(self.cost)]
        workflow.upsert_search_attributes(
            [STATE.value_set(state), *updates] if state is not None else updates
        )

    def _state_during(self, steps: Sequence[Step[Any]]) -> str:
        if not all(is_wait(step) for step in steps):
            return RunState.RUNNING
        if all(isinstance(step, Sleep) for step in steps):
            return RunState.SCHEDULED
        waits = [step for step in steps if isinstance(step, WaitForSignal)]
        if len(waits) == len(steps) and all(self.inbox.has(step.name) for step in waits):
            return self._shown[0] or RunState.RUNNING  # the signal is here: nothing to wait for
        return RunState.WAITING

    def _worst_case(self, step: Step[Any]) -> int:
        if is_wait(step):
            return 0
        worst_case = self.app.effect(step).worst_case
        return worst_case(step) if worst_case else 0

    async def _continue_as_new(self) -> None:
        await self.permits.settled()
        stop_if_cancelled()  # the next run would not know of it
        carried = Carried(
            batches=tuple(self._journal),
            cost=self.cost,
            state=self._shown[0],
            seen_signals=tuple(self.inbox.seen),
            undelivered=tuple(self.inbox.undelivered),
            admitted=self.permits.admitted,
        )
        following = self.run.model_copy(update={"carried": carried})
        if len(following.model_dump_json()) < CARRY_LIMIT or self.app.settings.payload_store:
            workflow.continue_as_new(following)


def stop_if_cancelled() -> None:
    """Between steps: a cancel that met an activity's completion in one task can be swallowed."""
    if workflow.cancellation_reason() is not None:
        raise asyncio.CancelledError


def end(plan: Plan) -> None:
    """End the agent. One that asks for more work while it is being ended does not get it."""
    try:
        close(plan)
    except AgentError as error:
        workflow.logger.warning("%s", error)
