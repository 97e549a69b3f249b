"""Show a report to a person: on a terminal, or as Markdown."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.text import Text

from investigation.steps import Finding, Report

_INDENT = (0, 0, 0, 3)


def render_terminal(report: Report) -> RenderableType:
    """A report for `rich.console.Console.print`."""
    parts: list[RenderableType] = [
        Text(report.question, style="bold"),
        Panel(Text(report.answer), title=f"Answer (confidence: {report.confidence})"),
    ]
    if report.inconclusive:
        parts.append(Text(f"Inconclusive: {report.inconclusive}", style="yellow"))
    for number, finding in enumerate(report.findings, start=1):
        parts += _finding(number, finding)
    if report.next_steps:
        parts.append(Text("\nNext", style="bold"))
        parts += [Padding(Text(f"• {step}"), _INDENT) for step in report.next_steps]
    if report.unsupported:
        dropped = "; ".join(report.unsupported)
        parts.append(Text(f"\nDropped, since no citation was true: {dropped}", style="yellow"))
    parts.append(Text(f"\n{effort(report)}", style="dim"))
    return Group(*parts)


def _finding(number: int, finding: Finding) -> list[RenderableType]:
    parts: list[RenderableType] = [
        Text(f"\n{number}. {finding.title}", style="bold cyan"),
        Padding(Text(finding.detail), _INDENT),
    ]
    for citation in finding.citations:
        place = Text(f"{citation.file}:{citation.line}  ", style="green")
        parts.append(Padding(place + Text(citation.text, style="dim"), _INDENT))
    return parts


def render_markdown(report: Report) -> str:
    """A report as a Markdown document."""
    blocks = [f"# {_plain(report.question)}", *map(_plain, report.answer.splitlines())]
    blocks.append(f"*Confidence: {report.confidence}.*")
    if report.inconclusive:
        blocks.append(f"**Inconclusive:** {_plain(report.inconclusive)}")
    for number, finding in enumerate(report.findings, start=1):
        blocks += [f"## {number}. {_plain(finding.title)}", _plain(finding.detail)]
        cited = "\n".join(f"{one.file}:{one.line}: {one.text}" for one in finding.citations)
        blocks.append(f"````\n{cited}\n````")
    if report.next_steps:
        blocks += ["## Next", "\n".join(f"- {_plain(step)}" for step in report.next_steps)]
    if report.unsupported:
        blocks += [
            "## Dropped, since no citation was true",
            "\n".join(f"- {_plain(title)}" for title in report.unsupported),
        ]
    return "\n\n".join([*blocks, f"---\n{effort(report)}"]) + "\n"


def effort(report: Report) -> str:
    """What the investigation took."""
    return (
        f"{report.model_calls} model calls and {report.tool_calls} tool calls with {report.model}; "
        f"{report.tokens_in:,} tokens in, {report.tokens_out:,} out, ${report.cost / 1e6:.4f}"
    )


def _plain(text: str) -> str:
    """Text from logs, so that Markdown shows it as it is."""
    return "".join(f"\\{char}" if char in "\\`*_{}[]<>#|" else char for char in text)
