"""The quiz: its questions can be answered by a run, and only by a run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from comparison.break_one import find_guard
from comparison.mapping.concept import find_concept
from comparison.mapping.recording import stored
from comparison.mapping.scenarios import find_scenario
from comparison.quiz.ask import by_run, predictions_from
from comparison.quiz.questions import QUESTIONS, Question
from tests.cli.command import clean_environment, two_workers
from two_workers import BadInput

EVERY = pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)


def test_there_are_about_twenty_questions() -> None:
    assert 18 <= len(QUESTIONS) <= 25
    assert len({question.name for question in QUESTIONS}) == len(QUESTIONS)


@EVERY
def test_a_question_is_about_a_concept_and_a_run(question: Question) -> None:
    find_concept(question.concept)
    if question.run.startswith("broken-"):
        find_guard(question.run.removeprefix("broken-"))
    else:
        find_scenario(question.run)


@EVERY
def test_a_run_answers_with_one_of_the_choices(question: Question) -> None:
    recording = stored(question.run)
    assert recording is not None
    assert question.answer(recording) in question.choices


def test_another_run_gives_another_answer() -> None:
    """The answers are read off the run: over the broken store the same question has another."""
    fact = "steps that B resumed"
    whole, broken = stored("cancel"), stored("broken-cancel")
    assert whole is not None
    assert broken is not None
    [question] = [q for q in QUESTIONS if q.name == "cancelled-orphan"]
    assert question.answer(whole) == str(whole.sides[0].facts[fact])
    assert question.answer(broken) != question.answer(whole)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('race = "3"', "expected one of '0', '1', '2'"),
        ('rice = "1"', "no question 'rice'"),
        ("race =", "Invalid value"),
        ("", "none for race"),
    ],
)
def test_bad_answers_are_bad_input(tmp_path: Path, text: str, problem: str) -> None:
    answers = tmp_path / "answers.toml"
    answers.write_text(text)
    with pytest.raises(BadInput, match=problem):
        predictions_from(answers, by_run(["race"]))


def test_predictions_from_a_file_are_judged_by_running(tmp_path: Path) -> None:
    answers = tmp_path / "answers.toml"
    answers.write_text('rollback = "no"\nrollback-temporal = "no"\n')
    found = two_workers("quiz", "atomic", "--answers", str(answers))
    assert found.returncode == 1, found.stderr
    assert "right: no" in found.stdout
    assert "the run showed yes, not no" in found.stdout
    assert "two-workers mapping atomic-start" in found.stdout
    assert "1 of 2 predictions were right" in found.stdout


def test_a_person_is_asked_at_the_terminal() -> None:
    found = subprocess.run(
        [sys.executable, "-m", "two_workers.cli", "quiz", "budget"],
        env=clean_environment(),
        input="9\n1\n",
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    assert "How many of 3 calls begin?" in found.stdout
    assert "1 of 1 predictions were right" in found.stdout
