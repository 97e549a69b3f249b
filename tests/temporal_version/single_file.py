"""An app in one file: its steps live beside the agent, so the sandbox has its own copy of them."""

from __future__ import annotations

from pydantic import BaseModel

from two_workers import App, Call, Effect, Step, do, do_all


class Question(BaseModel):
    words: list[str]


class Length(BaseModel):
    characters: int


class Measure(Step[Length]):
    word: str


async def measure_all(question: Question) -> int:
    first = await do(Measure(word="first"))
    assert isinstance(first, Length)
    lengths = await do_all([Measure(word=word) for word in question.words])
    return sum(length.characters for length in lengths)


async def measure(step: Measure, call: Call) -> Length:
    assert isinstance(step, Measure)
    return Length(characters=len(step.word))


APP = App(kind="single-file", agent=measure_all, effects={Measure: Effect(measure)})
