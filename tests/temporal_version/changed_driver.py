"""Drivers whose first command is a new one: behind `workflow.patched`, and without it."""

from __future__ import annotations

from pydantic import JsonValue
from temporalio import workflow

from temporal_version.messages import RUN_TYPE, RunInput
from temporal_version.workflow import AgentRun

PATCH = "a-timer-first"


@workflow.defn(name=RUN_TYPE)
class Patched(AgentRun):
    """New runs take the new way; runs that were open before the change keep to the old one."""

    @workflow.init
    def __init__(self, run: RunInput) -> None:
        super().__init__(run)

    @workflow.run
    async def run(self, run: RunInput) -> JsonValue:
        if workflow.patched(PATCH):
            await workflow.sleep(0.001)
        return await super().run(run)


@workflow.defn(name=RUN_TYPE)
class Unpatched(AgentRun):
    """The same change for all runs."""

    @workflow.init
    def __init__(self, run: RunInput) -> None:
        super().__init__(run)

    @workflow.run
    async def run(self, run: RunInput) -> JsonValue:
        await workflow.sleep(0.001)
        return await super().run(run)
