"""The quiz at a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click
from rich.console import Console

from comparison.quiz.ask import Verdict
from comparison.quiz.questions import Question


def show_questions(console: Console, groups: Sequence[tuple[str, Sequence[Question]]]) -> None:
    """All questions with their names, as one would answer them in a file."""
    for run, questions in groups:
        console.print(f"[bold cyan]{run}[/]")
        for question in questions:
            console.print(f"  {question.asks}")
            choices = " | ".join(f'"{choice}"' for choice in question.choices)
            console.print(f"    {question.name} = {choices}", style="dim", markup=False)


def ask_person(console: Console) -> Callable[[Question], str]:
    """Ask at the terminal: a number per choice."""

    def ask(question: Question) -> str:
        console.print(f"\n[bold]{question.asks}[/]")
        for number, choice in enumerate(question.choices, start=1):
            console.print(f"  {number}  {choice}", markup=False)
        number = click.prompt("your prediction", type=click.IntRange(1, len(question.choices)))
        return question.choices[number - 1]

    return ask


def show_verdicts(console: Console, verdicts: Sequence[Verdict]) -> None:
    """Each question with the prediction and what the run showed, and where to read on."""
    for verdict in verdicts:
        console.print(f"\n{verdict.question.asks}", markup=False)
        if verdict.right:
            console.print(f"  [green]right[/]: {verdict.shown}")
            continue
        console.print(f"  [bold red]the run showed {verdict.shown}[/], not {verdict.predicted}")
        console.print(f"  two-workers mapping {verdict.question.concept}", style="dim")
    right = sum(verdict.right for verdict in verdicts)
    console.print(f"\n{right} of {len(verdicts)} predictions were right")
