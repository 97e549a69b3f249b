"""A step of nothing and its effect, apart from the agent in `workload.py`."""

from __future__ import annotations

from benchmarks.timing import FirstStart
from two_workers import Call, Step


class Nothing(Step[int]):
    """A step that does nothing, and is recorded."""

    number: int


START = FirstStart()


async def perform(step: Nothing, call: Call) -> int:
    """The effect."""
    START.mark()
    return step.number
