"""How a lease is kept: one statement renews all of a worker's, and a thread sends it.

Renewal happens in a thread with an event loop of its own: an effect that blocks the worker's loop
does not stop it. It is not another process, because that would go on renewing for a worker that is
paused. The limits of a thread: while C code holds the interpreter lock (a backtracking regular
expression, `json.loads` of 100 MB) it does not run either. Then the lease ends and the fence holds.

Alive is not working: when the worker's loop has not ticked for `stall_limit`, the thread stops
renewing; and it never stamps progress.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Protocol

import psycopg

from hand_rolled.database import Connection, bounded, open_connection
from hand_rolled.lease import Lease, clock
from hand_rolled.settings import Settings
from two_workers.errors import EngineUnavailable

log = logging.getLogger("hand_rolled.heartbeat")

# One statement for all runs of a worker. Returns no row at all to a worker declared dead; a run
# that is not among the rows has another owner or has ended. Rows are locked in one order, so that
# it never deadlocks with another statement that locks several runs.
HEARTBEAT = """
WITH me AS (
    UPDATE workers SET heartbeat_at = clock_timestamp()
    WHERE worker_id = %(worker)s AND dead_at IS NULL
    RETURNING worker_id
), held AS MATERIALIZED (
    SELECT r.run_id
    FROM runs r
    JOIN unnest(%(run_ids)s::text[], %(generations)s::bigint[]) AS lease (run_id, generation)
      ON lease.run_id = r.run_id AND lease.generation = r.lease_generation
    WHERE r.lease_owner = (SELECT worker_id FROM me)
    ORDER BY r.run_id
    FOR NO KEY UPDATE OF r
), renewed AS (
    UPDATE runs r
    SET heartbeat_at = clock_timestamp(),
        lease_expires_at = clock_timestamp() + %(ttl)s,
        version = r.version + 1
    FROM held
    WHERE r.run_id = held.run_id
    RETURNING r.run_id, r.cancel_requested, r.suspend_requested
)
SELECT me.worker_id, renewed.run_id, renewed.cancel_requested, renewed.suspend_requested
FROM me LEFT JOIN renewed ON true
"""


class Owner(Protocol):
    """What the keeper tells the worker, always on the worker's event loop."""

    def lease_lost(self, lease: Lease) -> None: ...
    def requested(self, lease: Lease) -> None: ...
    def declared_dead(self) -> None: ...


@dataclass
class Keeper:
    """Renews the leases of one worker from a thread of its own."""

    settings: Settings
    worker: str
    owner: Owner
    loop: asyncio.AbstractEventLoop
    aside: Callable[[], Coroutine[None, None, None]] | None = None
    """Started on the keeper's loop beside the heartbeat (crash detection)."""
    ticked: float = field(default_factory=clock)
    _leases: dict[str, Lease] = field(default_factory=dict)
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _answered: float = field(default_factory=clock)
    _doubtful_until: float = 0.0
    _in_touch: bool = True
    _connection: Connection | None = None
    _thread: threading.Thread | None = None
    _stop: Callable[[], object] | None = None

    def start(self) -> None:
        """Begin to beat."""
        started = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._beat_until_stopped(started)),
            name=f"keeper {self.worker}",
            daemon=True,
        )
        self._thread.start()
        started.wait()

    async def stop(self) -> None:
        """End the thread; leases are no longer renewed."""
        if self._stop is not None and self._thread is not None:
            self._stop()
            await asyncio.to_thread(self._thread.join)

    def hold(self, lease: Lease) -> None:
        """Renew this lease from now on."""
        with self._guard:
            self._leases[lease.run_id] = lease

    def drop(self, lease: Lease) -> None:
        """Renew it no longer."""
        with self._guard:
            if self._leases.get(lease.run_id) is lease:
                del self._leases[lease.run_id]

    def leases(self) -> list[Lease]:
        """The leases that are being renewed."""
        with self._guard:
            return list(self._leases.values())

    def tick(self) -> None:
        """The worker's loop is alive. Also gives up leases whose trust has run out."""
        self.ticked = clock()
        for lease in self.leases():
            if lease.remaining() <= 0:
                self._lose(lease, "not renewed in time")

    @property
    def in_contact(self) -> bool:
        """False for a lease's time after the database was silent for most of a lease."""
        return clock() >= self._doubtful_until

    async def _beat_until_stopped(self, started: threading.Event) -> None:
        stopped = asyncio.Event()
        own_loop = asyncio.get_running_loop()
        self._stop = partial(own_loop.call_soon_threadsafe, stopped.set)
        started.set()
        beside = None if self.aside is None else asyncio.create_task(self.aside())
        try:
            while not stopped.is_set():
                begun, interval = clock(), self.settings.heartbeat_interval
                if not await self._beat():
                    interval /= 4  # so that a restart of the server costs no lease
                pause = max(0.0, interval - (clock() - begun))
                try:
                    async with asyncio.timeout(pause):
                        await stopped.wait()
                except TimeoutError:
                    continue
        finally:
            if beside is not None:
                beside.cancel()
                await asyncio.gather(beside, return_exceptions=True)
            if self._connection is not None:
                await self._connection.close()

    async def _beat(self) -> bool:
        """False if the database did not answer."""
        stalled = clock() - self.ticked
        if stalled > self.settings.stall_limit:
            log.warning("%s: event loop stalled for %.1f s, not renewing", self.worker, stalled)
            return True
        leases = self.leases()
        sent = clock()
        try:
            # Never longer than a beat: a silent connection must not use up the lease.
            rows = await bounded(self.settings.heartbeat_interval, self._send(leases))
        except (psycopg.Error, TimeoutError, OSError, EngineUnavailable) as error:
            level = logging.WARNING if self._in_touch else logging.DEBUG
            log.log(level, "%s: heartbeat failed: %s", self.worker, error or "no answer in time")
            self._in_touch = False
            await self._discard_connection()
            return False
        self._in_touch = True
        if sent - self._answered > self.settings.lease_ttl / 2:
            self._doubtful_until = clock() + self.settings.lease_ttl
        self._answered = clock()
        self._apply(leases, rows, sent)
        return True

    async def _send(self, leases: list[Lease]) -> list[dict[str, object]]:
        if self._connection is None or self._connection.closed:
            self._connection = await open_connection(self.settings, application="heartbeat")
        cursor = await self._connection.execute(
            HEARTBEAT,
            {
                "worker": self.worker,
                "run_ids": [lease.run_id for lease in leases],
                "generations": [lease.generation for lease in leases],
                "ttl": timedelta(seconds=self.settings.lease_ttl),
            },
        )
        return await cursor.fetchall()

    async def _discard_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    def _apply(self, leases: list[Lease], rows: list[dict[str, object]], sent: float) -> None:
        if not rows:
            self.die()
            return
        renewed = {str(row["run_id"]): row for row in rows if row["run_id"] is not None}
        trusted_until = sent + self.settings.lease_ttl - self.settings.lease_margin
        for lease in leases:
            row = renewed.get(lease.run_id)
            if row is None:
                if not lease.ending:
                    self._lose(lease, "the database knows another owner")
                continue
            lease.trusted_until = trusted_until
            self.request(
                lease, cancel=bool(row["cancel_requested"]), suspend=bool(row["suspend_requested"])
            )

    def request(self, lease: Lease, *, cancel: bool = False, suspend: bool = False) -> None:
        """Pass a request on to the worker, once."""
        news = (cancel and not lease.cancel_requested) or (suspend and not lease.suspend_requested)
        lease.cancel_requested |= cancel
        lease.suspend_requested |= suspend
        if news:
            self.loop.call_soon_threadsafe(self.owner.requested, lease)

    def die(self) -> None:
        """This owner id was declared dead: drop everything."""
        for lease in self.leases():
            self._lose(lease, "this worker was declared dead")
        self.loop.call_soon_threadsafe(self.owner.declared_dead)

    def _lose(self, lease: Lease, why: str) -> None:
        with self._guard:
            if self._leases.get(lease.run_id) is not lease:
                return  # it ended in order while we were asking
            del self._leases[lease.run_id]
            lease.lost = why
        self.loop.call_soon_threadsafe(self.owner.lease_lost, lease)
