"""Ask, run, compare. All questions about a run are asked before it is carried out."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from comparison.break_one import convict, find_guard
from comparison.mapping.recording import Recording
from comparison.mapping.scenarios import find_scenario
from comparison.mapping.scenarios.run import Servers, run
from comparison.quiz.questions import QUESTIONS, Question
from two_workers import BadInput

BROKEN = "broken-"


@dataclass(frozen=True)
class Verdict:
    """One question, what was predicted, and what the run showed."""

    question: Question
    predicted: str
    shown: str

    @property
    def right(self) -> bool:
        return self.predicted == self.shown


def by_run(names: Sequence[str] = ()) -> list[tuple[str, list[Question]]]:
    """The questions by the run that answers them, all or only some runs. Raises `BadInput`."""
    known = [question.run for question in QUESTIONS]
    for name in names:
        if name not in known:
            raise BadInput(
                f"no question about {name!r}; there is: {', '.join(dict.fromkeys(known))}"
            )
    chosen = [q for q in QUESTIONS if not names or q.run in names]
    chosen.sort(key=lambda q: known.index(q.run))
    return [(name, list(group)) for name, group in groupby(chosen, key=lambda q: q.run)]


def predictions_from(
    path: Path, groups: Sequence[tuple[str, Sequence[Question]]]
) -> Callable[[Question], str]:
    """Predictions from a TOML file: `name = "choice"`. Raises `BadInput` with what is wrong."""
    found = _read_answers(path)
    missing = [q.name for _, questions in groups for q in questions if q.name not in found]
    if missing:
        raise BadInput(f"answers in {path}: none for {', '.join(missing)}")
    return lambda question: found[question.name]


def _read_answers(path: Path) -> dict[str, str]:
    try:
        found = tomllib.loads(path.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise BadInput(f"answers in {path}: {error}") from error
    questions = {question.name: question for question in QUESTIONS}
    for name, value in found.items():
        if name not in questions:
            raise BadInput(f"answers in {path}: no question {name!r}")
        if value not in questions[name].choices:
            raise BadInput(
                f"answers in {path}: {name} = {value!r}; expected one of "
                + ", ".join(repr(choice) for choice in questions[name].choices)
            )
    return found


async def check(
    groups: Sequence[tuple[str, Sequence[Question]]],
    predict: Callable[[Question], str],
    before: Callable[[str], None],
) -> list[Verdict]:
    """Get the predictions for each run, carry it out, and compare."""
    verdicts = []
    async with Servers.open() as servers:
        for name, questions in groups:
            predictions = {question.name: predict(question) for question in questions}
            before(name)
            recording = await _carry_out(name, servers)
            verdicts += list(_compare(questions, predictions, recording))
    return verdicts


async def _carry_out(name: str, servers: Servers) -> Recording:
    if name.startswith(BROKEN):
        return await convict(find_guard(name.removeprefix(BROKEN)))
    return await run(find_scenario(name), servers)


def _compare(
    questions: Sequence[Question], predictions: Mapping[str, str], recording: Recording
) -> Iterator[Verdict]:
    for question in questions:
        yield Verdict(question, predictions[question.name], question.answer(recording))
