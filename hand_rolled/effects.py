"""Carrying out one step: slot, reservation, timeout, retries, and the fenced record of its outcome.

The lease is checked at the last moment before the effect begins. What comes back is an `Outcome`,
already recorded, or `Later`: the step is to be tried again, and until then the run needs neither a
lease nor a slot. No transaction is open while an effect runs.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from pydantic import JsonValue

from hand_rolled.entries import Entry, OpenStep, Place, Statements, WithSQL, as_json
from hand_rolled.journal import Journal
from hand_rolled.lease import LeaseLost, clock
from hand_rolled.limits import Slots
from hand_rolled.telemetry import step_span
from two_workers.apps import App, Call, Effect
from two_workers.errors import BudgetExceeded, PermanentFailure, RetryLater
from two_workers.steps import (
    Failed,
    Step,
    Succeeded,
    as_recorded,
    dump_outcome,
    fingerprint,
)

SLOT_POLL = 0.1  # seconds, about, between two looks for a slot or for room in the budget


@dataclass(frozen=True)
class Later:
    """Not done; go on in `seconds` (None: time alone brings nothing).

    Who waits for a signal goes on, too, when others have come than the `signals_seen` so far.
    """

    seconds: float | None
    signals_seen: int | None = None


@dataclass(frozen=True)
class Beat:
    """What a step last said about its progress. `news` counts the beats."""

    detail: JsonValue = None
    news: int = 0


@dataclass
class Effects:
    """Performs the steps of one run under one lease."""

    app: App
    journal: Journal
    slots: Slots
    resources: Any
    process: str
    jitter: float

    def __post_init__(self) -> None:
        self.beats: dict[Place, Beat] = {}
        self._shielded: set[asyncio.Task[Any]] = set()

    async def perform(
        self, place: Place, step: Step[Any], known: OpenStep
    ) -> Succeeded | Failed | Later:
        """Do one step, or say when to try again. Raises `LeaseLost`, `BudgetExceeded`."""
        if known.due is not None and known.due > clock():
            return Later(known.due - clock())
        effect = self.app.effect(step)
        if not effect.uninterruptible:
            return await self._attempt(place, step, effect, known)
        # A cancellation waits for the end of the step and of its record; a lost lease does not.
        inner = asyncio.create_task(self._attempt(place, step, effect, known))
        self._shielded.add(inner)
        inner.add_done_callback(self._shielded.discard)
        try:
            return await asyncio.shield(inner)
        except asyncio.CancelledError:
            await self._end(inner)
            raise

    async def _end(self, inner: asyncio.Task[Any]) -> None:
        if self.journal.lease.lost is not None:
            inner.cancel()
        await asyncio.wait([inner])
        if not inner.cancelled():
            inner.exception()  # looked at, and of no more interest: the run ends here either way

    def abort(self) -> None:
        """Stop uninterruptible steps too: the lease is lost, or the time for a drain is over."""
        for task in self._shielded:
            task.cancel()

    async def slept(self, place: Place, step: Step[Any]) -> Succeeded:
        """Record that a sleep is over."""
        nothing = Succeeded(value=None)
        text = as_json(dump_outcome(step, nothing))
        await self._record(place, step, _entry(step, nothing, text, 1))
        return nothing

    async def _attempt(
        self, place: Place, step: Step[Any], effect: Effect, known: OpenStep
    ) -> Succeeded | Failed | Later:
        attempt = known.failures + 1
        if effect.pool is not None or effect.worst_case is not None:
            await self._admit(place, step, effect, attempt, known)
        call = Call(
            run_id=self.journal.lease.run_id,
            key=f"{self.journal.lease.run_id}/{place.batch}.{place.position}",
            fence=(self.journal.lease.generation,),
            attempt=attempt + known.deferrals,
            engine="hand_rolled",
            worker=self.process,
            resources=self.resources,
            beat=lambda detail: self._beat(place, detail),
            checkpoint=known.checkpoint,
        )
        await self.journal.lease.confirmed()
        try:
            async with asyncio.timeout(effect.timeout):
                with self._span(step, call):
                    result = await effect.run(step, call)
            return await self._succeed(place, step, effect, attempt, result)
        except (LeaseLost, BudgetExceeded):
            raise
        except Exception as error:  # whatever the effect raises is its failure
            return await self._fail(place, step, effect, known, error)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return await self._fail(place, step, effect, known, error)  # it cancelled itself
        finally:
            self.beats.pop(place, None)

    def _span(self, step: Step[Any], call: Call) -> AbstractContextManager[None]:
        if not self.journal.database.settings.otel:
            return nullcontext()
        return step_span(
            f"step {step.kind}",
            run_id=call.run_id,
            key=call.key,
            generation=self.journal.lease.generation,
            attempt=call.attempt,
            worker=call.worker,
        )

    async def _admit(
        self, place: Place, step: Step[Any], effect: Effect, attempt: int, known: OpenStep
    ) -> None:
        """Wait for a slot of the pool and for room in the budget. Holds one slot at most, and none
        while it waits for another."""
        amount = effect.worst_case(step) if effect.worst_case is not None else 0
        number = attempt + known.deferrals  # a deferred attempt reserves again
        while not await self.slots.try_reserve(place, number, amount):
            await self._pause()
        while effect.pool is not None and not await self.slots.try_take(place, effect.pool):
            await self._pause()

    async def _pause(self) -> None:
        await asyncio.sleep(SLOT_POLL * random.uniform(0.5, 1.5))
        self.journal.lease.check()

    def _beat(self, place: Place, detail: JsonValue) -> None:
        if detail is not None:
            as_json(detail)  # what cannot be stored fails the effect that says it, here and now
        last = self.beats.get(place, Beat())
        self.beats[place] = Beat(last.detail if detail is None else detail, last.news + 1)

    async def _succeed(
        self, place: Place, step: Step[Any], effect: Effect, attempt: int, result: Any
    ) -> Succeeded | Failed:
        statements = result.statements if isinstance(result, WithSQL) else ()
        value = result.value if isinstance(result, WithSQL) else result
        cost = effect.cost(value) if effect.cost is not None else 0
        try:
            outcome, recorded = as_recorded(step, value)
            text = as_json(recorded)
        except ValueError as error:  # not the declared type, or not JSON: once more cannot help
            return await self._give_up(place, step, attempt, error, cost)
        entry = _entry(step, outcome, text, attempt, cost, statements)
        await self._record(place, step, entry)
        return outcome

    async def _fail(
        self, place: Place, step: Step[Any], effect: Effect, known: OpenStep, error: BaseException
    ) -> Failed | Later:
        last = self.beats.get(place)
        if last is not None and last.detail is not None:
            known = replace(known, checkpoint=last.detail)
        if isinstance(error, RetryLater):
            wait, noted = max(0.0, error.after), replace(known, deferrals=known.deferrals + 1)
        else:
            noted = replace(known, failures=known.failures + 1)
            hopeless = isinstance(error, PermanentFailure)
            if hopeless or noted.failures >= effect.retry.max_attempts:
                return await self._give_up(place, step, noted.failures, error)
            wait = effect.retry.delay(noted.failures)
        wait *= 1 + self.jitter * random.random()
        await self.journal.postpone(
            place,
            noted,
            wait=wait,
            error=describe(error),
            charge=not isinstance(error, RetryLater),
        )
        return Later(wait)

    async def _give_up(
        self, place: Place, step: Step[Any], attempts: int, error: BaseException, cost: int = 0
    ) -> Failed:
        outcome = Failed(error=type(error).__name__, message=message_of(error), attempts=attempts)
        entry = _entry(step, outcome, as_json(dump_outcome(step, outcome)), attempts, cost)
        await self._record(place, step, entry)
        return outcome

    async def _record(self, place: Place, step: Step[Any], entry: Entry) -> None:
        await self.journal.record(place, entry)


def _entry(
    step: Step[Any],
    outcome: Succeeded | Failed,
    text: str,
    attempt: int,
    cost: int = 0,
    statements: Statements = (),
) -> Entry:
    return Entry(
        kind=step.kind,
        fingerprint=fingerprint(step),
        outcome=text,
        succeeded=isinstance(outcome, Succeeded),
        attempt=attempt,
        cost=cost,
        statements=statements,
    )


def message_of(error: BaseException) -> str:
    """An error's text; a timeout has none of its own."""
    text = str(error).strip()
    return text or ("took longer than its timeout" if isinstance(error, TimeoutError) else "")


def describe(error: BaseException) -> str:
    """`Type: message`, for a person."""
    return f"{type(error).__name__}: {message_of(error)}".removesuffix(": ")
