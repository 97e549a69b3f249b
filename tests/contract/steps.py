"""Steps of the small app that the contract is tested with."""

from __future__ import annotations

from pydantic import BaseModel

from two_workers import Step


class Answer(BaseModel):
    text: str
    price: int = 0


class Ask(Step[Answer]):
    """Does what `how` says (see `probe.py`) and answers with `text`."""

    text: str
    how: str = "answer"


class Commit(Step[Answer]):
    """Like Ask, but registered as uninterruptible."""

    text: str
    how: str = "answer"


class Script(BaseModel):
    """A payload: what the agent asks for."""

    steps: list[str] = []
    how: str = "answer"
    wait_for: list[str] = []
    seconds: float = 0.0
