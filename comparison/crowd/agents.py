"""An errand: a list of acts, one after the other. On Temporal this is imported in the sandbox."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, JsonValue

from comparison.crowd.steps import Die
from investigation.steps import AskModel
from two_workers import WaitForSignal, do

Act = Literal["ask", "hear", "die"]


class Errand(BaseModel):
    """What to ask the model, and what to do in which order."""

    question: str
    acts: tuple[Act, ...]


async def run_errand(errand: Errand) -> list[JsonValue]:
    """The words that were heard, in the order in which they came."""
    heard: list[JsonValue] = []
    for act in errand.acts:
        match act:
            case "ask":
                await do(AskModel(question=errand.question, turns=()))
            case "hear":
                heard.append(await do(WaitForSignal(name="word")))
            case "die":
                await do(Die())
    return heard
