"""Reports for people: everything that matters is there, and logs cannot break the layout."""

from __future__ import annotations

import io

from rich.console import Console

from investigation.render import render_markdown, render_terminal
from investigation.steps import Citation, Finding, Report

REPORT = Report(
    question="why [bold]?",
    answer="Because of *that*.",
    confidence="medium",
    findings=(
        Finding(
            title="A <finding>",
            detail="with [red]details[/red]",
            citations=(Citation(file="a.log", line=7, text="ERROR [/] ``` # x"),),
        ),
    ),
    next_steps=("Look again.",),
    unsupported=("A claim",),
    model="scripted-1",
    model_calls=5,
    tool_calls=9,
    tokens_in=12_345,
    tokens_out=678,
    cost=30_114,
)


def on_terminal(report: Report) -> str:
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(render_terminal(report))
    return console.export_text()


def test_the_terminal_shows_markup_in_logs_as_it_is() -> None:
    text = on_terminal(REPORT)
    for part in (
        "why [bold]?",
        "Because of *that*.",
        "confidence: medium",
        "1. A <finding>",
        "with [red]details[/red]",
        "a.log:7  ERROR [/] ``` # x",
        "Look again.",
        "no citation was true: A claim",
        "5 model calls and 9 tool calls with scripted-1; 12,345 tokens in, 678 out, $0.0301",
    ):
        assert part in text


def test_markdown_quotes_what_comes_from_logs() -> None:
    text = render_markdown(REPORT)
    assert "# why \\[bold\\]?" in text
    assert "Because of \\*that\\*." in text
    assert "## 1. A \\<finding\\>" in text
    assert "````\na.log:7: ERROR [/] ``` # x\n````" in text


def test_an_inconclusive_report_says_why() -> None:
    report = Report(question="q", answer="a", confidence="none", inconclusive="the model refused")
    assert "Inconclusive: the model refused" in on_terminal(report)
    assert "**Inconclusive:** the model refused" in render_markdown(report)
