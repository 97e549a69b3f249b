"""Three steps in a row. On Temporal this module is imported inside the sandbox."""

from __future__ import annotations

from comparison.chaos.steps import Visit
from two_workers import do


async def tour(places: list[str]) -> list[str]:
    return [await do(Visit(place=place)) for place in places]
