"""What a run is told by its gate, and asked by its activities: no part of the driver's story."""

from __future__ import annotations

from pydantic import JsonValue
from temporalio import workflow

from temporal_version.progress import Progress


class Handlers:
    """Signals and a query that the engine sends itself; `AgentRun` inherits them."""

    progress: Progress

    @workflow.signal(name="granted")
    def granted(self, permit_id: str) -> None:
        """The gate granted a permit."""
        self.progress.permits.granted.add(permit_id)

    @workflow.signal(name="limits_now", unfinished_policy=workflow.HandlerUnfinishedPolicy.ABANDON)
    async def limits_now(self, gate: str) -> None:
        """Limits came into force while the run was active."""
        await self.progress.permits.join(gate)

    @workflow.query(name="step")
    def step(self, key: str) -> JsonValue:
        """A step in flight that was too large for history: its activity asks for it here."""
        return self.progress.by_reference[key]
