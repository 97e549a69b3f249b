"""A worker's time under one owner id: look for work, carry it out, hand it over.

A worker that is declared dead (its crash lock was found free) drops everything and begins a new
shift under a new owner id. Under the old one it could never again be told from its own zombie.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from hand_rolled.claim import Claimed, Claims
from hand_rolled.crash import CrashWatch
from hand_rolled.database import TRANSIENT, Database
from hand_rolled.effects import Effects, describe
from hand_rolled.handler import Handler
from hand_rolled.heartbeat import Keeper
from hand_rolled.journal import Journal
from hand_rolled.lease import Lease, LeaseLost, Standing, clock
from hand_rolled.limits import Slots, sweep
from hand_rolled.notify import listen
from hand_rolled.progress import Progress
from hand_rolled.reclaim import Reclaims
from hand_rolled.running import Running
from two_workers.apps import App

log = logging.getLogger("hand_rolled.worker")

TICK = 0.1  # seconds


class Shift:
    """Works until told to stop, or until this owner id is declared dead."""

    def __init__(
        self,
        database: Database,
        apps: Sequence[App],
        resources: Mapping[str, Any],
        *,
        owner: str,
        number: int,
        process: str,
    ) -> None:
        self._database = database
        self._settings = database.settings
        self._apps = {app.kind: app for app in apps}
        self._resources = resources
        self._owner, self._process = owner, process
        self._claims = Claims(database, owner)
        self._reclaims = Reclaims(database, owner)
        self._running: dict[str, Running] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._given_up: set[str] = set()
        """Runs that we left while the database may still call them ours. Not to be redelivered: in
        the world's eyes we would go on under the fence of what we left."""
        self._uncertain = False
        self.events: Counter[str] = Counter()
        self.wake = asyncio.Event()
        self.dead = asyncio.Event()
        self._standing = Standing()
        self.keeper = Keeper(self._settings, owner, self, asyncio.get_running_loop())
        if self._settings.crash_detection:
            self.keeper.aside = CrashWatch(
                self._settings,
                worker=owner,
                number=number,
                standing=self._standing,
                on_death=self._somebody_died,
                on_own_death=self.keeper.die,
            ).run

    # What the keeper and the listener tell us.

    def lease_lost(self, lease: Lease) -> None:
        """Stop work on a run at once; somebody else has it, or will."""
        log.warning("%s: lost %s: %s", self._owner, lease.run_id, lease.lost)
        self.events["lease lost"] += 1
        running = self._running.get(lease.run_id)
        if running is not None and running.lease is lease:
            running.abort()

    def requested(self, lease: Lease) -> None:
        """A cancellation interrupts the steps under way; a suspension waits for their end."""
        running = self._running.get(lease.run_id)
        if lease.cancel_requested and running is not None and running.lease is lease:
            running.interrupt()

    def declared_dead(self) -> None:
        """Others took us for dead. One-way: this owner id is used up."""
        log.warning("%s was declared dead; taking a new owner id", self._owner)
        self.dead.set()
        self.wake.set()

    def cancel_pushed(self, run_id: str) -> None:
        """A notification: the request is in the database, the next heartbeat would bring it."""
        running = self._running.get(run_id)
        if running is not None:
            self.keeper.request(running.lease, cancel=True)

    def _somebody_died(self) -> None:
        """Called on the keeper's thread."""
        self.keeper.loop.call_soon_threadsafe(self.wake.set)

    # The work.

    async def work(self, stop: asyncio.Event) -> None:
        """Until `stop` or until declared dead; then drain or drop."""
        self.keeper.start()
        beside = [
            asyncio.create_task(self._tick()),
            asyncio.create_task(self._bring_progress_home()),
            asyncio.create_task(self._wake_on(stop)),
        ]
        if self._settings.notify:
            beside.append(
                asyncio.create_task(
                    listen(self._settings, on_work=self.wake.set, on_cancel=self.cancel_pushed)
                )
            )
        try:
            while not stop.is_set() and not self.dead.is_set():
                await self._look_for_work()
            await self._drain()
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            await self.keeper.stop()

    async def _wake_on(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self.wake.set()

    async def _tick(self) -> None:
        while True:
            self.keeper.tick()
            await asyncio.sleep(TICK)

    async def _bring_progress_home(self) -> None:
        progress = Progress(self._database, self._owner)
        while True:
            await asyncio.sleep(self._settings.heartbeat_interval)
            await progress.stamp([(it.lease, it.handler.effects) for it in self._running.values()])

    async def _look_for_work(self) -> None:
        self.wake.clear()
        pause = self._settings.poll_interval * random.uniform(0.5, 1.0)
        try:
            await self._take_work()
            pause = min(pause, max(0.01, await self._until_due()))
        except (psycopg.Error, *TRANSIENT) as error:
            # A claim may have been committed although its answer never came.
            self._uncertain = True
            log.warning("%s: looking for work failed: %s", self._owner, describe(error))
        try:
            # Not `wait_for`: in Python 3.11 it loses a cancellation that comes with the wake-up.
            async with asyncio.timeout(pause):
                await self.wake.wait()
        except TimeoutError:
            return

    async def _take_work(self) -> None:
        if self._uncertain:
            asked = clock()
            begun = [*self._running, *self._given_up]
            for claimed in await self._reclaims.redeliver(begun):
                self._begin(claimed, asked)
            self._uncertain = False
        await self._take_orphans()
        await self._reclaims.promote()
        await sweep(self._database)
        if await self._makes_room():
            return
        for app in random.sample(list(self._apps.values()), len(self._apps)):
            if not self._running:
                await self._take_pending(app, want=1, suspect=True)
            await self._take_pending(app, want=self._free, suspect=False)

    async def _makes_room(self) -> bool:
        return bool(self._running) and await self._claims.must_make_room(list(self._apps))

    async def _until_due(self) -> float:
        due = await self._reclaims.next_due()
        return math.inf if due is None else due

    async def _take_orphans(self) -> None:
        asked = clock()
        for orphan in await self._reclaims.reclaim(
            list(self._apps),
            [app.version for app in self._apps.values()],
            free=self._free,
            known=list(self._running),
            in_contact=self.keeper.in_contact,
        ):
            log.info(
                "%s: %s of %s (%s) became %s",
                self._owner, orphan.run_id, orphan.previous, orphan.reason, orphan.became,
            )  # fmt: skip
            self.events[f"reclaimed: {orphan.reason}"] += 1
            if orphan.claimed is not None:
                self._begin(orphan.claimed, asked)

    async def _take_pending(self, app: App, *, want: int, suspect: bool) -> int:
        if want <= 0:
            return 0
        asked = clock()
        found = await self._claims.claim(app.kind, app.version, want=want, suspect=suspect)
        for claimed in found:
            self.events["claimed"] += 1
            self._begin(claimed, asked)
        return len(found)

    @property
    def _free(self) -> int:
        if any(it.lease.alone for it in self._running.values()):
            return 0  # a suspect runs alone until it has recorded a step
        return self._settings.concurrency - self._busy

    @property
    def _busy(self) -> int:
        return sum(running.busy for running in self._running.values())

    def _begin(self, claimed: Claimed, asked: float) -> None:
        lease = Lease(
            run_id=claimed.run_id,
            generation=claimed.generation,
            owner=self._owner,
            trusted_until=asked + self._settings.lease_ttl - self._settings.lease_margin,
            standing=self._standing,
            alone=claimed.alone,
        )
        self._given_up.discard(claimed.run_id)
        running = self._running[claimed.run_id] = self._prepared(lease, claimed)
        self.keeper.hold(lease)
        task = asyncio.create_task(self._own(running))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _prepared(self, lease: Lease, claimed: Claimed) -> Running:
        app = self._apps[claimed.kind]
        journal = Journal(self._database, lease, self._process)
        effects = Effects(
            app=app,
            journal=journal,
            slots=Slots(journal, claimed.budget),
            resources=self._resources[claimed.kind],
            process=self._process,
            jitter=self._settings.retry_jitter,
        )
        return Running(lease, Handler(app, journal, effects), claimed.payload)

    async def _own(self, running: Running) -> None:
        lease = running.lease
        try:
            await running.carry_out()
        except LeaseLost as lost:
            self._given_up.add(lease.run_id)
            log.warning("%s", lost)
        except Exception:
            # Not ours to blame on the run: its lease ends, and somebody takes it over.
            self._given_up.add(lease.run_id)
            log.exception("%s: giving up %s", self._owner, lease.run_id)
        finally:
            self.keeper.drop(lease)
            del self._running[lease.run_id]
            self.wake.set()

    async def _drain(self) -> None:
        """Hand over at the next boundary; interrupt what takes longer than `drain_timeout`."""
        for running in self._running.values():
            running.lease.hand_over = True
        if self._tasks and not self.dead.is_set():
            await asyncio.wait(self._tasks, timeout=self._settings.drain_timeout)
        for running in self._running.values():
            running.abort()
        if self._tasks:
            await asyncio.wait(self._tasks)
