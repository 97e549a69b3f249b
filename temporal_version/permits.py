"""A run's side of the permit gate (`gate.py`): ask, wait until granted, give back.

A run that was started while no limits were in force has no gate and sends nothing. It still keeps
book of what it would hold, so that it can tell a gate that is opened, or opened again, later.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from temporal_version.messages import Permit


class Permits:
    """The permits of one run."""

    def __init__(self, gate: str | None, tenant: str, *, admitted: bool) -> None:
        self.granted: set[str] = set()
        self.admitted = admitted
        self._gate = gate
        self._tenant = tenant
        self._held: dict[str, Permit] = {}
        self._wanted: dict[str, Permit] = {}
        self._returning: set[asyncio.Task[bool]] = set()
        self._joining = False

    @asynccontextmanager
    async def active(self) -> AsyncIterator[None]:
        """Be one of the active runs, and one of the tenant's."""
        permit = self._permit("run", "active", f"tenant:{self._tenant}")
        if self.admitted:  # before it continued as new; the gate knows holders by workflow id
            self._held[permit.permit_id] = permit
        async with self._given_back(permit):
            await self._acquire(permit)
            self.admitted = True
            yield
        await self.settled()

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

    async def settled(self) -> None:
        """Wait until the gate has all that this run had to tell it.

        Before a run ends or continues as new: the server drops what a closed run still had to send.
        """
        await workflow.wait_condition(lambda: not self._joining)
        await asyncio.gather(*self._returning)

    async def join(self, gate: str) -> None:
        """Limits came into force, or their gate is a new one that knows nobody yet."""
        self._gate, self._joining = gate, True
        held = [permit.model_copy(update={"held": True}) for permit in self._held.values()]
        for permit in (*held, *self._wanted.values()):
            await self._send("acquire", permit)
        await self._send("joined", workflow.info().workflow_id)
        self._joining = False

    @asynccontextmanager
    async def _given_back(self, permit: Permit) -> AsyncIterator[None]:
        """Release when the body ends, fails or is cancelled.

        Not on the other ways out, which are no ends: continue-as-new, and the cache forgetting
        the workflow.
        """
        try:
            yield
        except (Exception, asyncio.CancelledError):
            self._give_back(permit)
            await self.settled()
            raise
        self._give_back(permit)

    async def _acquire(self, permit: Permit) -> None:
        if permit.permit_id in self._held:
            return
        self._wanted[permit.permit_id] = permit
        if self._gate is not None and await self._send("acquire", permit):
            await workflow.wait_condition(lambda: permit.permit_id in self.granted)
        del self._wanted[permit.permit_id]
        self._held[permit.permit_id] = permit

    def _give_back(self, permit: Permit) -> None:
        """In the background: what the run does next need not wait for it."""
        self._held.pop(permit.permit_id, None)
        self._wanted.pop(permit.permit_id, None)
        if self._gate is not None:
            task = asyncio.create_task(self._send("release", permit.permit_id))
            self._returning.add(task)
            task.add_done_callback(self._returning.discard)

    def _permit(self, name: str, *resources: str) -> Permit:
        run_id = workflow.info().workflow_id
        return Permit(permit_id=f"{run_id}/{name}", owner=run_id, resources=resources)

    async def _send(self, name: str, argument: Permit | str) -> bool:
        """Signal the gate. False if there is none (any more): then there are no limits."""
        gate = workflow.get_external_workflow_handle(str(self._gate))
        try:
            await gate.signal(name, argument)
        except ApplicationError as error:
            if error.type != "ExternalWorkflowExecutionNotFound":
                raise
            return False
        return True
