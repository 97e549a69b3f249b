"""A worker process: connect, open the apps' resources, work shift after shift until stopped."""

from __future__ import annotations

import asyncio
import os
import socket
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any

from hand_rolled.database import TRANSIENT, Database, persistently
from hand_rolled.fast.shift import FastShift
from hand_rolled.migrate import require_migrated
from hand_rolled.settings import Settings
from hand_rolled.shift import Shift
from hand_rolled.telemetry import served
from two_workers.apps import App
from two_workers.errors import BadInput

# The lock lets no change of the limits pass this worker by: it waits for us and finds our row, or
# we wait for it and read what it wrote.
REGISTER = """
INSERT INTO workers (worker_id, process, host, pid, kinds, versions, concurrency, counted)
SELECT %(owner)s, %(process)s, %(host)s, %(pid)s, %(kinds)s, %(versions)s, %(concurrency)s, counted
FROM limits FOR SHARE
ON CONFLICT (worker_id) DO UPDATE SET heartbeat_at = clock_timestamp()
WHERE workers.process = excluded.process AND workers.host = excluded.host
  AND workers.pid = excluded.pid AND workers.dead_at IS NULL
RETURNING number
"""

DEREGISTER = "UPDATE workers SET stopped_at = clock_timestamp() WHERE worker_id = %(owner)s"


class HandRolledWorker:
    """Implements `two_workers.Worker`."""

    def __init__(self, settings: Settings, apps: Sequence[App], *, worker_id: str) -> None:
        if not apps:
            raise BadInput("a worker needs at least one app, found none")
        kinds = [app.kind for app in apps]
        if len(set(kinds)) != len(kinds):
            raise BadInput(f"each app of a worker needs a kind of its own, found {kinds}")
        self._settings = settings
        self._apps = list(apps)
        self._worker_id = worker_id

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop`, then drain. Raises `EngineUnavailable` if it cannot begin."""
        database = Database(self._settings, application=self._worker_id)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(database.opened())
            await require_migrated(database)
            resources = {
                app.kind: await stack.enter_async_context(app.resources()) for app in self._apps
            }
            events: Counter[str] = Counter()
            await stack.enter_async_context(served(database, events))
            incarnation = 0
            while not stop.is_set():
                # A worker id is used for one life: a reused name would let a zombie keep its
                # successor's runs alive.
                owner = self._worker_id if incarnation == 0 else f"{self._worker_id}~{incarnation}"
                await self._shift(database, resources, owner, stop, events)
                incarnation += 1

    async def _shift(
        self,
        database: Database,
        resources: Mapping[str, Any],
        owner: str,
        stop: asyncio.Event,
        events: Counter[str],
    ) -> None:
        number = await persistently(lambda: self._register(database, owner))
        kind_of_shift = FastShift if self._settings.fast else Shift
        shift = kind_of_shift(
            database, self._apps, resources, owner=owner, number=number, process=self._worker_id
        )
        shift.events = events
        await shift.work(stop)
        if stop.is_set():
            with suppress(*TRANSIENT):  # a worker that cannot say goodbye is found silent
                await database.fetch(DEREGISTER, owner=owner)

    async def _register(self, database: Database, owner: str) -> int:
        row = await database.fetch_one(
            REGISTER,
            owner=owner,
            process=self._worker_id,
            host=socket.gethostname(),
            pid=os.getpid(),
            kinds=[app.kind for app in self._apps],
            versions=[app.version for app in self._apps],
            concurrency=self._settings.concurrency,
        )
        if row is None:
            raise BadInput(
                f"worker id {owner!r} is taken by another process; "
                "a worker id must be new for each start"
            )
        number: int = row["number"]
        return number
