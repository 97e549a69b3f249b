"""How much may be started: the engine's limits, answered by queueing or by 429.

The engine itself never runs more than its limits allow; what is above them waits as `pending`.
A service that shall say *no* instead of *later* has to look before it starts. Looking and starting
are two operations, so with several service processes a few runs more than the limit may be taken;
they then wait. Within one process a lock makes it exact, as far as the engine's listing is
current: Temporal's lags a little behind its starts.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import HTTPException

from investigation.service.settings import Settings
from two_workers import Engine, RunNotFound, RunState

RETRY_AFTER = 5  # seconds; a run takes longer, so asking sooner is of no use


class Admission:
    """Guards the starts of one service."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self._engine = engine
        self._settings = settings
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def admitted(self, run_id: str, tenant: str) -> AsyncIterator[None]:
        """Start a run inside this block. Raises 429; never for a run that already exists."""
        async with self._lock:
            if not await self._exists(run_id):
                await self._check(tenant)
            yield

    async def _exists(self, run_id: str) -> bool:
        try:
            await self._engine.get(run_id)
        except RunNotFound:
            return False
        return True

    async def _check(self, tenant: str) -> None:
        queued = await self._count(RunState.PENDING, tenant, self._settings.max_queued)
        if queued >= self._settings.max_queued:
            raise _busy(f"{queued} runs of {tenant!r} already wait for a worker")
        if self._settings.admission == "queue":
            return
        limits = await self._engine.limits()
        of_tenant = limits.tenants.get(tenant, limits.max_active_per_tenant)
        for limit, whose, name in (
            (limits.max_active, None, "in all"),
            (of_tenant, tenant, f"of {tenant!r}"),
        ):
            if limit is not None and await self._open(whose, limit) >= limit:
                raise _busy(f"{limit} runs {name} are active, which is the limit")

    async def _open(self, tenant: str | None, enough: int) -> int:
        """Runs that are active or about to be: a pending one will take its place first."""
        counts = [
            await self._count(state, tenant, enough)
            for state in (RunState.RUNNING, RunState.PENDING)
        ]
        return sum(counts)

    async def _count(self, state: RunState, tenant: str | None, enough: int) -> int:
        return len(await self._engine.list_runs(state=state, tenant=tenant, limit=enough + 1))


def _busy(reason: str) -> HTTPException:
    return HTTPException(
        429, f"{reason}; try again later", headers={"Retry-After": str(RETRY_AFTER)}
    )
