"""The app under test: an agent of one step, which holds.

It holds the agent alone, because Temporal's sandbox imports an agent's module anew for every run.
"""

from __future__ import annotations

from benchmarks.ownership.holding import Hold, perform
from two_workers import App, Effect, do


async def agent(payload: Hold) -> str:
    """The agent."""
    return await do(payload)


APP = App(kind="hold", agent=agent, effects={Hold: Effect(perform, timeout=600)})
