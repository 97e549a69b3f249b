"""Imports the agents of a worker while it is being made, where their runs will import them.

The SDK imports the module of each workflow in the sandbox when a worker is made. That of our driver
is shared with the process (`registry.py`), so it tells nothing about agents. This one is not: an
agent that the sandbox refuses stops the worker at once, instead of every run that it would get.
"""

from __future__ import annotations

from temporalio import workflow

from temporal_version.registry import load_checked


@workflow.defn(name="Preload")
class Preload:
    """Nobody starts it: it only names this module to the SDK."""

    @workflow.run
    async def run(self) -> None:
        """A workflow must have one."""


load_checked()
