"""Steps of the study app, and what a run of it is asked to do."""

from __future__ import annotations

from pydantic import BaseModel

from two_workers import Step


class Stay(BaseModel):
    """What a visit gives, and what it cost in micro-dollars."""

    place: str
    price: int = 0


class Visit(Step[Stay]):
    """One call to the outside. `how` says what the effect does, see `app.py`."""

    place: str
    how: str = "hold"
    price: int = 0


class Pay(Step[Stay]):
    """Like Visit, but may not be cut in two: registered as uninterruptible."""

    place: str


class Tour(BaseModel):
    """A payload: the places to visit, one step each. `price` in micro-dollars for each."""

    places: list[str]
    how: str = "hold"
    price: int = 0
