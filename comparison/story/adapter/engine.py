"""The story's client: what its table can say about runs. What it has no answer to, it refuses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, NoReturn

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb
from pydantic import JsonValue

from comparison.story.adapter.settings import Pool, StorySettings, open_pool
from comparison.story.statements import CANCEL, START
from two_workers import (
    BadInput,
    Limits,
    Run,
    RunCancelled,
    RunConflict,
    RunFailed,
    RunNotFound,
    RunState,
    RunView,
    StepRecord,
)

_POLL = 0.05  # seconds between two looks of `result`

_GET = "SELECT * FROM runs WHERE run_id = %(run_id)s"
_LIST = """
SELECT * FROM runs
WHERE (%(status)s::text IS NULL OR status = %(status)s)
  AND (%(tenant)s::text IS NULL OR task ->> 'tenant' = %(tenant)s)
  AND (%(kind)s::text IS NULL OR task ->> 'kind' = %(kind)s)
ORDER BY created_at DESC LIMIT %(limit)s
"""
_STEPS = "SELECT * FROM journal WHERE run_id = %(run_id)s"


class StoryEngine:
    """A client of the story's table."""

    name = "story"

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def start(self, run: Run) -> RunView:
        """Insert the run. Raises `RunConflict`, and `BadInput` for a budget."""
        if run.budget is not None:
            _has_no("budgets")
        task = run.model_dump(mode="json", include={"kind", "tenant", "payload"})
        await self._rows(START, run_id=run.run_id, task=Jsonb(task))
        row = await self._row(run.run_id)
        if row["task"] != task:
            raise RunConflict(run.run_id)
        return _view(row)

    async def get(self, run_id: str) -> RunView:
        """One run. Raises `RunNotFound`."""
        return _view(await self._row(run_id))

    async def list_runs(
        self,
        *,
        state: RunState | None = None,
        tenant: str | None = None,
        kind: str | None = None,
        limit: int = 100,
    ) -> Sequence[RunView]:
        """Runs, newest first."""
        rows = await self._rows(_LIST, status=state, tenant=tenant, kind=kind, limit=limit)
        return [_view(row) for row in rows]

    async def cancel(self, run_id: str, *, reason: str = "") -> RunView:
        """Set the flag. A pending run stays pending until a worker claims it and looks."""
        await self._rows(CANCEL, run_id=run_id)
        return await self.get(run_id)

    async def result(self, run_id: str, *, timeout: float) -> JsonValue:
        """Poll until the run has ended. Raises as the protocol says."""
        async with asyncio.timeout(timeout):
            while not (view := await self.get(run_id)).state.is_final:
                await asyncio.sleep(_POLL)
        match view.state:
            case RunState.FAILED:
                raise RunFailed(run_id, view.failure or "")
            case RunState.CANCELLED:
                raise RunCancelled(run_id)
            case _:
                result: JsonValue = (await self._row(run_id))["result"]
                return result

    async def steps(self, run_id: str) -> Sequence[StepRecord]:
        """The journal, in the order of its keys. Raises `RunNotFound`."""
        await self._row(run_id)
        records = [_record(row) for row in await self._rows(_STEPS, run_id=run_id)]
        return sorted(records, key=lambda record: _place(record.key))

    async def signal(self, run_id: str, name: str, payload: JsonValue, *, signal_id: str) -> None:
        """Refused."""
        _has_no("signals")

    async def limits(self) -> Limits:
        """None are in force."""
        return Limits()

    async def set_limits(self, limits: Limits) -> None:
        """Refused, unless there is nothing to set."""
        if limits != Limits():
            _has_no("limits")

    async def _row(self, run_id: str) -> DictRow:
        for row in await self._rows(_GET, run_id=run_id):
            return row
        raise RunNotFound(run_id)

    async def _rows(self, statement: str, **values: Any) -> list[DictRow]:
        async with self._pool.connection() as connection:
            cursor = await connection.execute(statement, values)
            return await cursor.fetchall() if cursor.description else []


def _has_no(what: str) -> NoReturn:
    raise BadInput(f"the story's table has no {what}; expected an engine that has: hand_rolled")


def _place(key: str) -> list[int]:
    return [int(number) for number in key.rpartition("/")[2].split(".")]


def _view(row: DictRow) -> RunView:
    state, running = RunState(row["status"]), row["status"] == "running"
    return RunView(
        run_id=row["run_id"],
        kind=row["task"]["kind"],
        tenant=row["task"]["tenant"],
        state=state,
        created_at=row["created_at"],
        closed_at=row["closed_at"],
        cancel_requested=row["cancel_requested"],
        failure=row["result"] if state is RunState.FAILED else None,
        owner=row["lease_owner"] if running else None,
        owned_until=row["lease_expires_at"] if running else None,
        recovery="the next claim after the lease has expired" if running else None,
        native={"heartbeat_at": row["heartbeat_at"] and row["heartbeat_at"].isoformat()},
    )


def _record(row: DictRow) -> StepRecord:
    recorded = row["outcome"]  # as this arm's worker wrote it
    return StepRecord(
        key=row["key"],
        kind=recorded["kind"],
        outcome=recorded["outcome"]["outcome"],
        attempt=recorded["attempt"],
        worker=recorded["worker"],
        recorded_at=row["recorded_at"],
    )


@asynccontextmanager
async def connect(settings: StorySettings) -> AsyncIterator[StoryEngine]:
    """A client. Raises `EngineUnavailable`."""
    async with open_pool(settings, "story-client") as pool:
        yield StoryEngine(pool)
