"""The minimal workflow that temporal_version is held against: one activity, nothing else.

A module of its own, because the SDK's sandbox imports a workflow's module anew for every run.
"""

from __future__ import annotations

from datetime import timedelta

from temporalio import activity, workflow


@activity.defn
async def nothing(number: int) -> int:
    """An activity that does nothing."""
    return number


@workflow.defn
class Bare:
    """One step of nothing."""

    @workflow.run
    async def run(self, number: int) -> int:
        """Have it done."""
        return await workflow.execute_activity(
            nothing, number, start_to_close_timeout=timedelta(seconds=60)
        )
