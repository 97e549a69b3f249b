"""The driver: an agent under a lease. Hold it beside `temporal_version/workflow.py`.

The agent asks for batches of steps. A step that is in the journal is not performed again; its
recorded outcome is sent in, after checking that the agent still asks for the same thing. Any other
step is performed and recorded under the fence. A batch is complete when each of its steps has an
outcome; until then the run leaves its lease and waits.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue, ValidationError

from hand_rolled.effects import Effects, Later
from hand_rolled.entries import OpenStep, Place, Recorded
from hand_rolled.journal import Journal
from hand_rolled.lease import LeaseLost
from hand_rolled.waits import sleep, take_signal
from two_workers.apps import App, is_wait
from two_workers.errors import ReplayMismatch
from two_workers.steps import (
    Done,
    Failed,
    Plan,
    Sleep,
    Step,
    Succeeded,
    WaitForSignal,
    advance,
    close,
    fingerprint,
    load_outcome,
)

log = logging.getLogger("hand_rolled.worker")

FOREVER = float("inf")


@dataclass(frozen=True)
class Finished:
    """The agent returned."""

    result: JsonValue


@dataclass(frozen=True)
class Parked:
    """Nothing to do for `wait` seconds (None: until a signal comes).

    `signals_seen` is the number of signals that had come when we looked; None if none is awaited.
    """

    wait: float | None
    signals_seen: int | None


@dataclass(frozen=True)
class HandedOver:
    """Stopped between two batches, because somebody asked: cancel, suspend or drain."""


@dataclass
class Handler:
    """Drives one run from its journal to wherever it can get under this lease."""

    app: App
    journal: Journal
    effects: Effects

    async def drive(self, payload: JsonValue) -> Finished | Parked | HandedOver:
        """Raises whatever the agent raises, `LeaseLost`, `BudgetExceeded`, `ReplayMismatch`."""
        self.recorded, self.open_steps = await self.journal.load()
        plan = self.app.plan(payload)
        try:
            request, n = advance(plan, None), 0
            while not isinstance(request, Done):
                if self.journal.lease.interrupted:
                    return HandedOver()
                self._expect_no_more(Place(n, len(request.steps)))
                outcomes = await self._batch(n, request.steps)
                if isinstance(outcomes, Parked):
                    return outcomes
                request, n = advance(plan, outcomes), n + 1
            self._expect_no_more(Place(n, 0))
            return Finished(self.app.dump_result(request.value))
        finally:
            _close(plan)

    async def _batch(self, n: int, steps: Sequence[Step[Any]]) -> list[Succeeded | Failed] | Parked:
        """Effects first, all at once; then the waits, which need no worker."""
        done: dict[int, Succeeded | Failed | Later] = {}

        async def once(i: int) -> None:
            done[i] = await self._once(Place(n, i), steps[i])

        try:
            async with asyncio.TaskGroup() as group:
                for i, step in enumerate(steps):
                    if not is_wait(step):
                        group.create_task(once(i))
        except BaseExceptionGroup as several:
            raise _the_one_that_matters(several) from None
        signals_seen: list[int] = []
        for i, step in enumerate(steps):
            if is_wait(step):
                done[i] = await self._wait(Place(n, i), step, signals_seen)
        later = [it.seconds for it in done.values() if isinstance(it, Later)]
        if later:
            times = [seconds for seconds in later if seconds < FOREVER]
            # The fewest: a signal that came between two looks must keep the run from parking.
            return Parked(
                wait=min(times, default=None), signals_seen=min(signals_seen, default=None)
            )
        return [it for i in range(len(steps)) if not isinstance(it := done[i], Later)]

    async def _once(self, place: Place, step: Step[Any]) -> Succeeded | Failed | Later:
        """The recorded outcome; else perform the step and record it."""
        if place in self.recorded:
            return self._replayed(place, step, self.recorded[place])
        return await self.effects.perform(place, step, self.open_steps.get(place, OpenStep()))

    async def _wait(
        self, place: Place, step: Step[Any], signals_seen: list[int]
    ) -> Succeeded | Failed | Later:
        if place in self.recorded:
            return self._replayed(place, step, self.recorded[place])
        match step:
            case Sleep(seconds=seconds):
                remaining = await sleep(self.journal, place, seconds)
                return Later(remaining) if remaining > 0 else await self.effects.slept(place, step)
            case WaitForSignal(name=name):
                taken, payload, seen = await take_signal(
                    self.journal, place, name, fingerprint(step)
                )
                if taken:
                    return Succeeded(value=payload)
                signals_seen.append(seen)
                return Later(FOREVER)
        raise TypeError(f"not a wait: {step.kind}")

    def _expect_no_more(self, end: Place) -> None:
        """Raise `ReplayMismatch` if more was recorded of this batch than the agent now asks for."""
        if not self.recorded:
            return
        beyond = [p for p in self.recorded if p.batch == end.batch and p.position >= end.position]
        if beyond:
            first = min(beyond, key=lambda place: place.position)
            raise ReplayMismatch(
                key=f"{self.journal.lease.run_id}/{first.batch}.{first.position}",
                recorded=self.recorded[first].fingerprint,
                asked="nothing",
            )

    def _replayed(self, place: Place, step: Step[Any], found: Recorded) -> Succeeded | Failed:
        asked = fingerprint(step)
        key = f"{self.journal.lease.run_id}/{place.batch}.{place.position}"
        if found.fingerprint != asked:
            raise ReplayMismatch(key=key, recorded=found.fingerprint, asked=asked)
        try:
            return load_outcome(step, found.outcome)
        except ValidationError as error:
            raise ReplayMismatch(
                key=key, recorded="another type of result", asked=f"{asked} ({error.error_count()})"
            ) from error


def _the_one_that_matters(several: BaseExceptionGroup[BaseException]) -> BaseException:
    return min(several.exceptions, key=lambda error: not isinstance(error, LeaseLost))


def _close(plan: Plan) -> None:
    """End the agent. What it does wrong in a `finally` must not decide how its run ends."""
    try:
        close(plan)
    except Exception:
        log.exception("an agent that was being ended did not end cleanly")
