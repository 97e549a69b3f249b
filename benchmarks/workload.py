"""The work that this project's engines are measured with: an agent of so many steps of nothing.

It imports little, because Temporal's sandbox imports an agent's module anew for every run.
"""

from __future__ import annotations

from benchmarks.timing import FirstStart
from two_workers import App, Call, Effect, Step, do


class Nothing(Step[int]):
    """A step that does nothing, and is recorded."""

    number: int


async def work(steps: int) -> int:
    """The agent."""
    for number in range(steps):
        await do(Nothing(number=number))
    return steps


START = FirstStart()


async def perform(step: Nothing, call: Call) -> int:
    """The effect."""
    START.mark()
    return step.number


APP = App(kind="bench", agent=work, effects={Nothing: Effect(perform)})
