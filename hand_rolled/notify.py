"""Notifications: they only lower latency. Polling and heartbeats alone are correct.

NOTIFY takes a lock of the whole database through its commit, so it is never part of the transaction
that does the work: it follows in a small one of its own, and rings for new work are coalesced.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import psycopg

from hand_rolled.database import TRANSIENT, Connection, Database, open_connection
from hand_rolled.settings import Settings
from two_workers.errors import EngineUnavailable

log = logging.getLogger("hand_rolled.worker")

WORK = "two_workers_work"
CANCEL = "two_workers_cancel"

RING = "SELECT pg_notify(%(channel)s, %(payload)s)"

COALESCE = 0.1  # seconds


class Bell:
    """Rings for the workers. Never raises: what it says is in the tables anyway."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._ringing: asyncio.Task[None] | None = None
        self._again = False

    def ring_for_work(self) -> None:
        """There may be new work. At most one ring per 0.1 s, the first at once."""
        if not self._database.settings.notify:
            return
        if self._ringing is not None and not self._ringing.done():
            self._again = True
        else:
            self._ringing = asyncio.create_task(self._ring_coalesced())

    async def _ring_coalesced(self) -> None:
        self._again = True
        while self._again:
            self._again = False
            await self._ring(WORK, "")
            await asyncio.sleep(COALESCE)

    async def ring_for_cancel(self, run_id: str) -> None:
        """A cancellation was requested for a run that has an owner."""
        if self._database.settings.notify:
            await self._ring(CANCEL, run_id)

    async def _ring(self, channel: str, payload: str) -> None:
        try:
            await self._database.fetch(RING, channel=channel, payload=payload)
        except (psycopg.Error, *TRANSIENT) as error:
            log.warning("notification not sent: %s", error)

    async def close(self) -> None:
        """Let a ring that is due go out."""
        if self._ringing is not None:
            await asyncio.gather(self._ringing, return_exceptions=True)


async def listen(
    settings: Settings, *, on_work: Callable[[], None], on_cancel: Callable[[str], None]
) -> None:
    """Pass notifications on until cancelled; reconnect when the connection is lost.

    Needs a connection of its own, straight to the server: poolers in transaction mode drop LISTEN.
    """
    while True:
        try:
            async with await open_connection(settings, application="listener") as connection:
                await _listen_on(connection, on_work, on_cancel)
        except (psycopg.Error, EngineUnavailable, OSError) as error:
            log.info("listener: %s; polling meanwhile", error)
        await asyncio.sleep(settings.poll_interval)


async def _listen_on(
    connection: Connection, on_work: Callable[[], None], on_cancel: Callable[[str], None]
) -> None:
    await connection.execute(f"LISTEN {WORK}")
    await connection.execute(f"LISTEN {CANCEL}")
    async for notice in connection.notifies():
        if notice.channel == CANCEL:
            on_cancel(notice.payload)
        else:
            on_work()
