"""The lesson's sentences, and what shows each of them: `story.toml`, with its names followed."""

from __future__ import annotations

import tomllib
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from comparison.ladder.rungs import find_rung
from comparison.mapping.concept import find_concept
from comparison.quiz.questions import QUESTIONS
from hand_rolled.catalogue import sql_of
from two_workers import BadInput


class Sentence(BaseModel):
    """One sentence of substance, and the names of what covers it."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    text: str
    by: tuple[str, ...] = Field(min_length=1)


def sentences() -> list[Sentence]:
    """All of them, in the order of the lesson."""
    story = tomllib.loads(Path(__file__).with_name("story.toml").read_text())
    return [Sentence.model_validate(one) for one in story["sentence"]]


def follow(name: str) -> None:
    """Raises `BadInput` if what `kind:name` names does not exist."""
    kind, _, what = name.partition(":")
    match kind:
        case "concept":
            find_concept(what)
        case "rung":
            find_rung(int(what))
        case "question":
            if what not in {question.name for question in QUESTIONS}:
                raise BadInput(f"no question {what!r}")
        case "statement":
            sql_of(what)
        case _:
            raise BadInput(f"{name!r}: expected concept, rung, question or statement")
