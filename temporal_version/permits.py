"""A run's side of the permit gate (`gate.py`): ask, wait until granted, give back.

A run that was started while no limits were in force has no gate and sends nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from temporal_version.messages import Permit

ASK_AGAIN = timedelta(seconds=60)
"""A gate that somebody terminated has forgotten who waits; asking again reaches its successor."""


class Permits:
    """The permits of one run."""

    def __init__(self, gate: str | None, *, admitted: bool) -> None:
        self.granted: set[str] = set()
        self.admitted = admitted
        self._gate = gate

    def active(self, tenant: str) -> AbstractAsyncContextManager[None]:
        """Be one of the active runs, and one of the tenant's."""
        return self._hold("run", "active", f"tenant:{tenant}")

    def pool(self, pool: str | None, key: str) -> AbstractAsyncContextManager[None]:
        """Make one of the pool's calls, if the effect belongs to one."""
        return self._hold(key, f"pool:{pool}") if pool else nullcontext()

    @asynccontextmanager
    async def _hold(self, name: str, *resources: str) -> AsyncIterator[None]:
        if self._gate is None:
            yield
            return
        run_id = workflow.info().workflow_id
        permit = Permit(permit_id=f"{run_id}/{name}", owner=run_id, resources=resources)
        keep = False
        try:
            if not (name == "run" and self.admitted):
                await self._acquire(permit)
            self.admitted = True
            yield
        except workflow.ContinueAsNewError:
            keep = True  # the gate knows holders by workflow id, so the next run still holds it
            raise
        finally:
            if not keep:
                await self._send("release", permit.permit_id)

    async def _acquire(self, permit: Permit) -> None:
        while permit.permit_id not in self.granted:
            if not await self._send("acquire", permit):
                return  # no gate, so no limits
            try:
                await workflow.wait_condition(
                    lambda: permit.permit_id in self.granted, timeout=ASK_AGAIN
                )
            except TimeoutError:
                continue

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
