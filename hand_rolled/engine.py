"""The client: start, look, signal, cancel. Every request is durable before it returns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg.rows import dict_row
from pydantic import JsonValue

from hand_rolled import lifecycle, views
from hand_rolled.database import TRANSIENT, Database, Row, persistently, unavailable
from hand_rolled.entries import as_json, as_text, is_same
from hand_rolled.fast.starts import Starts
from hand_rolled.limits import read_limits, write_limits
from hand_rolled.migrate import require_migrated
from hand_rolled.notify import Bell
from hand_rolled.settings import Settings
from two_workers.errors import (
    RunCancelled,
    RunClosed,
    RunConflict,
    RunFailed,
    RunNotFound,
)
from two_workers.protocol import Limits, Run, RunState, RunView, StepRecord


class HandRolledEngine:
    """Implements `two_workers.Engine`, and more that only a table can do."""

    name = "hand_rolled"

    def __init__(self, database: Database) -> None:
        self.database = database
        self._bell = Bell(database)
        self._starts = Starts(database) if database.settings.fast else None

    async def start(self, run: Run, *, conn: psycopg.AsyncConnection[Any] | None = None) -> RunView:
        """Start a run; with `conn`, as part of the caller's transaction: both happen or neither.

        Raises `RunConflict` if the id is taken by other content.
        """
        if conn is not None:
            async with conn.cursor(row_factory=dict_row) as cursor:

                async def fetch(statement: Any, **values: Any) -> list[Row]:
                    await cursor.execute(statement, values)
                    return await cursor.fetchall()

                return await _start(run, fetch)
        if self._starts is not None:
            row, content = await self._starts.start(run)
            if content is not run and not is_same(run, content):
                raise RunConflict(run.run_id)
            view = views.run_view(row)
        else:
            view = await _start(run, self._fetch)
        self._bell.ring_for_work()
        return view

    async def start_many(self, runs: Sequence[Run]) -> None:
        """Start many runs in few statements. Each is durable on return; safe to repeat.

        Raises `RunConflict` for the first whose id is taken by other content; the rest is started.
        """
        asked = {run.run_id: run for run in reversed(runs)}
        taken = await Starts(self.database).start_many(asked.values())
        self._bell.ring_for_work()
        for run in runs:
            first = asked[run.run_id]
            if run.run_id in taken or (run is not first and not is_same(run, first)):
                raise RunConflict(run.run_id)

    async def get(self, run_id: str) -> RunView:
        """One run. Raises `RunNotFound`."""
        return views.run_view(await self._one(views.GET_RUN, run_id=run_id))

    async def list_runs(
        self,
        *,
        state: RunState | None = None,
        tenant: str | None = None,
        kind: str | None = None,
        limit: int = 100,
    ) -> Sequence[RunView]:
        """Runs, newest first."""
        rows = await self._fetch(
            views.LIST_RUNS,
            state=None if state is None else state.value,
            tenant=tenant,
            kind=kind,
            limit=limit,
        )
        return [views.run_view(row) for row in rows]

    async def signal(self, run_id: str, name: str, payload: JsonValue, *, signal_id: str) -> None:
        """Deliver a signal once per `signal_id`, in order. Raises `RunNotFound`, `RunClosed`."""
        found = await self._one(
            lifecycle.SIGNAL,
            run_id=run_id,
            name=name,
            payload=as_json(payload),
            signal_id=signal_id,
        )
        if not found["new"] and not found["known"] and RunState(found["status"]).is_final:
            raise RunClosed(run_id, found["status"])
        self._bell.ring_for_work()

    async def cancel(self, run_id: str, *, reason: str = "") -> RunView:
        """Request cancellation, durably; an owner hears of it at once. Raises `RunNotFound`."""
        rows = await self._fetch(lifecycle.CANCEL, run_id=run_id, reason=as_text(reason))
        if rows and rows[0]["status"] == RunState.RUNNING:
            await self._bell.ring_for_cancel(run_id)
        return await self.get(run_id)

    async def result(self, run_id: str, *, timeout: float) -> JsonValue:
        """Wait up to `timeout` seconds for the end and return the agent's result.

        Raises `RunFailed`, `RunCancelled`, `RunNotFound`, builtin `TimeoutError`.
        """
        pause = 0.02
        async with asyncio.timeout(timeout):
            while not RunState(
                (found := await self._one(views.GET_END, run_id=run_id))["status"]
            ).is_final:
                await asyncio.sleep(pause)
                pause = min(0.25, pause * 1.5)
        match RunState(found["status"]):
            case RunState.FAILED:
                raise RunFailed(run_id, found["failure"])
            case RunState.CANCELLED:
                raise RunCancelled(run_id)
            case _:
                value: JsonValue = found["result"]
                return value

    async def steps(self, run_id: str) -> Sequence[StepRecord]:
        """The recorded steps in the order of their keys. Raises `RunNotFound`."""
        await self._one(views.GET_END, run_id=run_id)
        rows = await self._fetch(views.LIST_STEPS, run_id=run_id)
        return [views.step_record(run_id, row) for row in rows]

    async def limits(self) -> Limits:
        """The limits in force."""
        return await persistently(lambda: read_limits(self.database))

    async def set_limits(self, limits: Limits) -> None:
        """Replace the limits, for all workers, from now on."""
        await persistently(lambda: write_limits(self.database, limits))
        self._bell.ring_for_work()

    async def close(self) -> None:
        """Ring what is still to be rung."""
        await self._bell.close()

    async def _fetch(self, statement: Any, **values: Any) -> list[Row]:
        """All client statements are safe to repeat."""
        try:
            return await persistently(lambda: self.database.fetch(statement, **values))
        except TRANSIENT as error:
            raise unavailable(error) from error

    async def _one(self, statement: Any, *, run_id: str, **values: Any) -> Row:
        rows = await self._fetch(statement, run_id=run_id, **values)
        if not rows:
            raise RunNotFound(run_id)
        return rows[0]


async def _start(run: Run, fetch: Callable[..., Awaitable[list[Row]]]) -> RunView:
    new = await fetch(
        lifecycle.ENQUEUE,
        run_id=run.run_id,
        kind=run.kind,
        tenant=run.tenant,
        priority=run.priority,
        payload=as_json(run.payload),
        budget=run.budget,
    )
    if not new:
        [content] = await fetch(lifecycle.CONTENT, run_ids=[run.run_id])
        if not is_same(run, content):
            raise RunConflict(run.run_id)
    [row] = await fetch(views.GET_RUN, run_id=run.run_id)
    return views.run_view(row)


@asynccontextmanager
async def connect(settings: Settings) -> AsyncIterator[HandRolledEngine]:
    """A client. Raises `EngineUnavailable` on entering if nobody answers or nothing is migrated."""
    async with Database(settings, application="client").opened() as database:
        await require_migrated(database)
        engine = HandRolledEngine(database)
        try:
            yield engine
        finally:
            await engine.close()
