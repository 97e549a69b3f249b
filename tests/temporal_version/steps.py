"""Steps of the app that the Temporal engine is tested with."""

from __future__ import annotations

from pydantic import BaseModel, JsonValue

from two_workers import Step


class Answer(BaseModel):
    text: str
    price: int = 0


class Work(Step[Answer]):
    """Does what `how` says (see `app.py`), writing down in `ledger` what it did."""

    text: str
    ledger: str
    how: str = "answer"
    filler: str = ""


class Commit(Work):
    """Like Work, but registered as uninterruptible."""


class Script(BaseModel):
    """A payload: what the agent asks for."""

    ledger: str = ""
    steps: list[str] = []
    how: str = "answer"
    calls: int = 0
    size: int = 0
    note: JsonValue = None
