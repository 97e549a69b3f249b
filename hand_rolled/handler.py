"""The driver: an agent under a lease. Hold it beside `temporal_version/workflow.py`.

A worker owns the run and performs its steps itself, each batch under the run's lease:

    claim       an UPDATE of the run's row, which one worker wins (`claim.py`)
    lease       `lease_ttl`, by the database's clock (`lease.py`)
    heartbeat   one UPDATE for all runs of a worker; a beat of a step is *progress*, beside it
    reclaim     whichever worker looks first after the lease has ended (`reclaim.py`)
    generation  counted by the run's row; every write asks for it (`journal.py`)

After a takeover the agent is advanced again from its beginning, with the outcomes of the journal.
A record holds the step's fingerprint, so an agent that now asks for something else raises
`ReplayMismatch`: the run waits for a worker whose code fits. Whatever the agent itself raises
fails the *run*. What needs no worker (a sleep, a signal, the pause before a retry) the run awaits
*parked*, without a lease.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from hand_rolled.effects import Effects, Later
from hand_rolled.entries import Place
from hand_rolled.journal import Journal
from hand_rolled.lease import LeaseLost
from hand_rolled.replay import Replay, end
from hand_rolled.waits import answer
from two_workers.apps import App, is_wait
from two_workers.steps import Done, Failed, Sleep, Step, Succeeded, WaitForSignal, advance


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
        self.replay = await Replay.of(self.journal)
        plan = self.app.plan(payload)
        try:
            request, n = advance(plan, None), 0
            while not isinstance(request, Done):
                if self.journal.lease.interrupted:
                    return HandedOver()
                self.replay.ends_at(Place(n, len(request.steps)))
                outcomes = await self._batch(n, request.steps)
                if isinstance(outcomes, Parked):
                    return outcomes
                request, n = advance(plan, outcomes), n + 1
            self.replay.ends_at(Place(n, 0))
            return Finished(self.app.dump_result(request.value))
        finally:
            end(plan)

    async def _batch(self, n: int, steps: Sequence[Step[Any]]) -> list[Succeeded | Failed] | Parked:
        """All effects of a batch at the same time; then its waits, which need no worker."""
        asked = [(Place(n, i), step) for i, step in enumerate(steps)]
        try:
            async with asyncio.TaskGroup() as group:
                tasks = {
                    place: group.create_task(self._once(place, step))
                    for place, step in asked
                    if not is_wait(step)
                }
        except BaseExceptionGroup as several:
            raise _the_one_that_matters(several) from None
        done = {place: task.result() for place, task in tasks.items()}
        for place, step in asked:
            if is_wait(step):
                done[place] = await self._once(place, step)
        later = [it for it in done.values() if isinstance(it, Later)]
        if later:
            return _park(later)
        return [it for place, _ in asked if not isinstance(it := done[place], Later)]

    async def _once(self, place: Place, step: Step[Any]) -> Succeeded | Failed | Later:
        """The recorded outcome; else perform the step and record it."""
        recorded = self.replay.outcome(place, step)
        if recorded is not None:
            return recorded
        match step:
            case Sleep() | WaitForSignal():
                return await answer(self.effects, place, step)
            case _:
                return await self.effects.perform(place, step, self.replay.open_step(place))


def _park(later: Sequence[Later]) -> Parked:
    """Until the first of several reasons to go on."""
    times = [it.seconds for it in later if it.seconds is not None]
    # The fewest: a signal that came between two looks must keep the run from parking.
    seen = [it.signals_seen for it in later if it.signals_seen is not None]
    return Parked(wait=min(times, default=None), signals_seen=min(seen, default=None))


def _the_one_that_matters(several: BaseExceptionGroup[BaseException]) -> BaseException:
    return min(several.exceptions, key=lambda error: not isinstance(error, LeaseLost))
