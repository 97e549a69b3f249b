"""Crash is not pause: noticing within a fraction of a second that a worker's process died.

Each worker holds a session advisory lock on a connection that does nothing else. When the process
dies, its sockets close and the server frees the lock in about ten milliseconds; survivors poll
`pg_locks`. A paused process keeps its sockets, so it keeps its lock, and its lease decides.

A free lock alone proves nothing: a backend that was terminated frees the lock of a live worker. So
a survivor infers a death only if it saw the lock held, then free, within one unbroken lock session
of its own, and still free after a grace in which a live worker would have locked again. A server
restart or a failover breaks every observer's session too, so all fall back to the lease by
themselves. If the inference is wrong nevertheless, the generation makes it harmless.

The other half is the worker's own: while its lock session is cut, others may take it for dead, so
it begins no call until it holds the lock again. Under that lock nobody can declare it dead.

Behind a pooler in transaction mode the lock would outlive its worker; there, detection is off.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import LiteralString

import psycopg

from hand_rolled.database import Connection, Row, bounded, open_connection
from hand_rolled.lease import Standing, clock
from hand_rolled.settings import Settings
from two_workers.errors import EngineUnavailable

log = logging.getLogger("hand_rolled.crash")

# The first half of the lock's key. The second is the worker's number: an identity, never a hash,
# since two workers with the same key would each keep the other's lock alive.
LOCK_CLASS = 7230916

# A statement that runs while its client dies would hold the lock until it ends; the check makes the
# server look for the client meanwhile. An idle session must not be closed for being idle.
PREPARE_SESSION = """
SELECT set_config('client_connection_check_interval', '100ms', false),
       set_config('idle_session_timeout', '0', false)
"""

BACKEND = "SELECT pg_backend_pid() AS pid"

# Never pg_advisory_lock: who waits in it holds a snapshot, and vacuum cannot clean up behind it.
LOCK = """
SELECT pg_try_advisory_lock(%(lock_class)s, %(number)s) AS locked,
       (SELECT dead_at FROM workers WHERE number = %(number)s) IS NULL AS alive
"""

OBSERVE = """
SELECT l.objid::bigint AS number, l.pid
FROM pg_locks l JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()
WHERE l.locktype = 'advisory' AND l.classid = %(lock_class)s AND l.objsubid = 2 AND l.granted
"""

# Alive → dead, one-way. Taking the dead worker's own lock excludes that it lives and locks again;
# its row's lock makes a claim or heartbeat of it that is in flight come first, or find it dead.
DECLARE_DEAD = """
WITH suspect AS MATERIALIZED (
    SELECT worker_id, number FROM workers
    WHERE number = %(number)s AND dead_at IS NULL AND stopped_at IS NULL
    FOR NO KEY UPDATE
), certain AS MATERIALIZED (
    SELECT worker_id FROM suspect WHERE pg_try_advisory_xact_lock(%(lock_class)s, number)
)
UPDATE workers w SET dead_at = clock_timestamp()
FROM certain WHERE w.worker_id = certain.worker_id
RETURNING w.worker_id
"""


class DetectionOff(Exception):
    """Crash detection cannot work here; the lease alone decides."""


class LockLost(Exception):
    """The lock session ended, or the server no longer knows our lock."""


UNREACHABLE = (psycopg.Error, EngineUnavailable, OSError, TimeoutError)


@dataclass
class CrashWatch:
    """Holds one worker's crash lock and watches those of the others."""

    settings: Settings
    worker: str
    number: int
    standing: Standing
    on_death: Callable[[], None]
    on_own_death: Callable[[], None]
    _held: set[int] = field(default_factory=set)
    _freed: dict[int, float] = field(default_factory=dict)

    async def run(self) -> None:
        """Until cancelled, or until detection turns out not to work here."""
        while True:
            try:
                if not await self._session():
                    return
            except DetectionOff as reason:
                self.standing.sure = True
                log.warning(
                    "%s: crash detection is off, the lease decides: %s", self.worker, reason
                )
                return
            except (LockLost, *UNREACHABLE) as error:
                log.info("%s: %s; the lease decides meanwhile", self.worker, error)
            await asyncio.sleep(0.01)

    async def _session(self) -> bool:
        """One lock session: what was observed in it means nothing in the next.

        Returns False, at once, if this worker was declared dead; else raises when it ends.
        """
        self._held.clear()
        self._freed.clear()
        async with await open_connection(self.settings, application="crash lock") as lock:
            if not await self._take_lock(lock):
                return False
            self.standing.sure = True
            cut = asyncio.Event()
            loop = asyncio.get_running_loop()
            loop.add_reader(lock.fileno(), cut.set)  # nothing is ever sent to it but its end
            try:
                while not cut.is_set():
                    await self._watch(lock.info.backend_pid, cut)
                raise LockLost("the lock session was cut")
            finally:
                loop.remove_reader(lock.fileno())
                # Whatever ended this session: until the lock is ours again, others may doubt us.
                self.standing.sure = False

    async def _watch(self, own_backend: int, cut: asyncio.Event) -> None:
        """Observe until the lock session is cut. A second connection, whose loss costs nothing."""
        try:
            async with await open_connection(self.settings, application="crash watch") as eyes:
                while not cut.is_set():
                    await self._observe(eyes, own_backend)
                    await _wait(cut, self._pause())
        except UNREACHABLE as error:
            log.info("%s: cannot see the locks: %s", self.worker, error)
            await _wait(cut, self.settings.crash_poll)

    async def _take_lock(self, lock: Connection) -> bool:
        """False if this worker was declared dead."""
        [backend] = await _rows(lock, BACKEND, {})
        if backend["pid"] != lock.info.backend_pid:
            raise DetectionOff("a pooler stands between us and PostgreSQL")
        try:
            await lock.execute(PREPARE_SESSION)
        except psycopg.errors.InvalidParameterValue:
            log.debug("this server's system cannot check for lost clients")
        [row] = await _rows(lock, LOCK, {"number": self.number})
        if not row["locked"]:
            raise DetectionOff("somebody else holds the lock of this worker")
        if not row["alive"]:
            self.on_own_death()
        alive: bool = row["alive"]
        return alive

    async def _observe(self, eyes: Connection, own_backend: int) -> None:
        rows = await bounded(self.settings.query_timeout, _rows(eyes, OBSERVE, {}))
        holders = {row["number"]: row["pid"] for row in rows}
        if holders.get(self.number) != own_backend:
            raise LockLost("the server no longer knows our lock")
        now = clock()
        for number in self._held - holders.keys():
            freed = self._freed.setdefault(number, now)
            if now - freed >= self.settings.crash_grace:
                await self._declare_dead(eyes, number)
                self._held.discard(number)
        self._held |= holders.keys()
        for number in list(self._freed):
            if number in holders or number not in self._held:
                del self._freed[number]

    def _pause(self) -> float:
        """Until the next look: a poll, or the end of the first grace that runs out before."""
        now, grace = clock(), self.settings.crash_grace
        left = [freed + grace - now for freed in self._freed.values()]
        return (
            max(0.001, min(self.settings.crash_poll, *left)) if left else self.settings.crash_poll
        )

    async def _declare_dead(self, eyes: Connection, number: int) -> None:
        declared = _rows(eyes, DECLARE_DEAD, {"number": number})
        for row in await bounded(self.settings.query_timeout, declared):
            log.warning("%s: the process of %s died", self.worker, row["worker_id"])
        self.on_death()  # also when another survivor was faster


async def _rows(
    connection: Connection, statement: LiteralString, values: dict[str, int]
) -> list[Row]:
    cursor = await connection.execute(statement, values | {"lock_class": LOCK_CLASS})
    return await cursor.fetchall()


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        # Not `wait_for`: in Python 3.11 it loses a cancellation that comes with the event.
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
