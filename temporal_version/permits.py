"""A run's side of the permit gate (`gate.py`): ask, wait until granted, give back.

A run that was started while no limits were in force has no gate and sends nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from temporal_version.messages import Permit

ASK_AGAIN = timedelta(seconds=60)
"""A gate that somebody terminated has forgotten who waits; asking again reaches its successor."""


class Permits:
    """The permits of one run."""

    def __init__(self, gate: str | None, tenant: str, *, admitted: bool) -> None:
        self.granted: set[str] = set()
        self.admitted = admitted
        self._gate = gate
        self._tenant = tenant

    @asynccontextmanager
    async def active(self) -> AsyncIterator[None]:
        """Be one of the active runs, and one of the tenant's."""
        permit = self._active_permit()
        async with self._given_back(permit):
            if not self.admitted:
                await self._acquire(permit)
                self.admitted = True
            yield

    @asynccontextmanager
    async def pool(self, pool: str | None, key: str) -> AsyncIterator[None]:
        """Make one of the pool's calls, if the effect belongs to one."""
        if pool is None:
            yield
            return
        permit = self._permit(key, f"pool:{pool}")
        async with self._given_back(permit):
            await self._acquire(permit)
            yield

    @asynccontextmanager
    async def _given_back(self, permit: Permit) -> AsyncIterator[None]:
        """Release when the body ends, fails or is cancelled.

        Not on the other ways out, which are no ends: continue-as-new (the gate knows holders by
        workflow id, so the next run still holds it), and the cache forgetting the workflow.
        """
        try:
            yield
        except (Exception, asyncio.CancelledError):
            await self._release(permit)
            raise
        await self._release(permit)

    async def join(self, gate: str) -> None:
        """Limits came into force. An active run counts from now on; it is not stopped."""
        self._gate = gate
        if self.admitted:
            await self._send("acquire", self._active_permit(held=True))

    def _active_permit(self, *, held: bool = False) -> Permit:
        return self._permit("run", "active", f"tenant:{self._tenant}", held=held)

    def _permit(self, name: str, *resources: str, held: bool = False) -> Permit:
        run_id = workflow.info().workflow_id
        return Permit(permit_id=f"{run_id}/{name}", owner=run_id, resources=resources, held=held)

    async def _acquire(self, permit: Permit) -> None:
        while self._gate is not None and permit.permit_id not in self.granted:
            if not await self._send("acquire", permit):
                return  # no gate, so no limits
            try:
                await workflow.wait_condition(
                    lambda: permit.permit_id in self.granted, timeout=ASK_AGAIN
                )
            except TimeoutError:
                continue

    async def _release(self, permit: Permit) -> None:
        if self._gate is not None:
            await self._send("release", permit.permit_id)

    async def _send(self, name: str, argument: Permit | str) -> bool:
        """Signal the gate. False if there is none (any more)."""
        gate = workflow.get_external_workflow_handle(str(self._gate))
        try:
            await gate.signal(name, argument)
        except ApplicationError as error:
            if error.type != "ExternalWorkflowExecutionNotFound":
                raise
            return False
        return True
