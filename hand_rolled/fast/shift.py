"""The worker's loop on the fast path: claims in batches, housekeeping at its own pace.

The readable loop looks for everything each time a run ends: due runs, orphans, suspects, leftovers.
Here the end of runs leads to a claim of as many new ones, and the rest is looked for every
`poll_interval`, when a run is due, and at once after a death.

A run takes one of its worker's places until the agent has returned, not until the end is durable:
there is nothing more to carry out. And a claim takes half of the places at most. So there are runs
to carry out while the database is busy with the next claim and the last ends.
"""

from __future__ import annotations

import asyncio
import gc
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hand_rolled.claim import Claimed
from hand_rolled.fast.claims import FastClaims
from hand_rolled.fast.commit import GroupCommit
from hand_rolled.fast.journal import FastEffects, FastHandler, FastJournal
from hand_rolled.handler import Finished, HandedOver, Parked
from hand_rolled.lease import Lease, clock
from hand_rolled.limits import Slots
from hand_rolled.running import Driving, Running
from hand_rolled.shift import Shift
from two_workers.apps import App

SELDOM = 20_000, 20, 20
"""When Python looks for garbage in cycles: a run leaves none, and at 700 objects, the default, the
search took a sixth of a short run's time."""


class FastShift(Shift):
    """A shift whose runs share their commits."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._claims = FastClaims(self._database, self._owner)
        self._look_around_at = self._due_at = 0.0
        self._making_room = False
        self._half = math.ceil(self._settings.concurrency / 2)
        self._group = GroupCommit(self._database, owner=self._owner, process=self._process)

    @property
    def _busy(self) -> int:
        # Where the database is slow, ends pile up, and claims must wait for them.
        return max(super()._busy, len(self._running) - self._settings.concurrency)

    def _somebody_died(self) -> None:
        self._look_around_at = 0.0
        super()._somebody_died()

    async def _take_work(self) -> None:
        if self._uncertain or clock() >= min(self._look_around_at, self._due_at):
            self._look_around_at = clock() + self._settings.poll_interval
            await super()._take_work()
            self._due_at = clock() + await super()._until_due()
            return
        if self._making_room:
            return
        for app in self._apps.values():
            await self._take_pending(app, want=self._free, suspect=False)

    async def _makes_room(self) -> bool:
        """Until the next look around, that is: places that become free stay free."""
        self._making_room = await super()._makes_room()
        return self._making_room

    async def _until_due(self) -> float:
        return self._due_at - clock()

    async def _take_pending(self, app: App, *, want: int, suspect: bool) -> int:
        found = await super()._take_pending(app, want=min(want, self._half), suspect=suspect)
        if found == self._half:
            self.wake.set()  # there may be more
        return found

    async def work(self, stop: asyncio.Event) -> None:
        """Until `stop` or until declared dead; the last flush ends after the last run."""
        often = gc.get_threshold()
        gc.set_threshold(*SELDOM)
        flushing = asyncio.create_task(self._group.run())
        try:
            await super().work(stop)
        finally:
            gc.set_threshold(*often)
            flushing.cancel()
            await asyncio.gather(flushing, return_exceptions=True)

    def _prepared(self, lease: Lease, claimed: Claimed) -> Running:
        app = self._apps[claimed.kind]
        journal = FastJournal(self._database, lease, self._process, group=self._group)
        effects = FastEffects(
            app=app,
            journal=journal,
            slots=Slots(journal, claimed.budget),
            resources=self._resources[claimed.kind],
            process=self._process,
            jitter=self._settings.retry_jitter,
        )
        handler = FastHandler(app, journal, effects)
        return FastRunning(lease, handler, claimed.payload, on_place=self.wake.set)


@dataclass(kw_only=True)
class FastRunning(Running):
    """A run that is driven in the task that owns it, and gives up its place at its end."""

    on_place: Callable[[], None]

    async def _driven(self, work: Driving) -> Finished | Parked | HandedOver:
        """Without a task of its own: ours can be cancelled only until the work is done."""
        task = asyncio.current_task()
        assert task is not None
        self.drive = task
        try:
            outcome = await work
        finally:
            self.drive = None
            while task.cancelling():  # the interruption ends here; what comes after goes on
                task.uncancel()
        if isinstance(outcome, Finished):  # who is parked may have to go on at once
            self.busy = False
            self.on_place()
        return outcome
