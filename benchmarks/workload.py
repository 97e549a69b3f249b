"""The work that this project's engines are measured with: an agent of so many steps of nothing.

It holds the agent alone, because Temporal's sandbox imports an agent's module anew for every run.
"""

from __future__ import annotations

from benchmarks.nothing import Nothing, perform
from two_workers import App, Effect, do


async def work(steps: int) -> int:
    """The agent."""
    for number in range(steps):
        await do(Nothing(number=number))
    return steps


APP = App(kind="bench", agent=work, effects={Nothing: Effect(perform)})
