"""The report on a terminal and as Markdown, from the same data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from comparison.arms import find_arm
from comparison.reading import terms, warnings
from comparison.report import ArmResult, rows
from comparison.scene import Paid
from comparison.sentences import differences, not_shown, opening
from comparison.verdicts import Outcome

MARKS = {Outcome.PASS: "✓", Outcome.FAIL: "✗", Outcome.UNKNOWN: "?", Outcome.NOT_PROMISED: "–"}
THEIRS = {
    "story": "story, an engine over the SQL that the story gives",
    "hand_rolled": "hand_rolled, all of it",
    "temporal": "the workflow, activities and settings on Temporal (Temporal is not theirs)",
}
"""What the authors wrote of each engine."""
STYLES = {
    Outcome.PASS: "green",
    Outcome.FAIL: "bold red",
    Outcome.UNKNOWN: "yellow",
    Outcome.NOT_PROMISED: "dim",
}


@dataclass(frozen=True)
class Report:
    """Everything that is shown."""

    seed: int
    environment: dict[str, str]
    scene: Paid
    results: Sequence[ArmResult]
    seconds: float

    @property
    def header(self) -> list[str]:
        """What was compared, on what, by whom."""
        env = self.environment
        lines = [
            self._authors,
            f"seed {self.seed}; commit {env['commit']}; {self.seconds:.0f} s; {env['machine']}, "
            f"{env['cpus']} CPUs; Python {env['python']}, temporalio {env['temporalio']}, "
            f"psycopg {env['psycopg']}",
        ]
        for result in self.results:
            arm = find_arm(result.arm)
            settings = ", ".join(f"{k}={v}" for k, v in arm.env.items())
            server = ", ".join(f"{k}={v}" for k, v in result.server.items())
            lines.append(
                f"{arm.name}: {arm.what}. Settings: {settings}. Server: {server}. Durability: "
                f"{arm.durability}. Its owner maintains {arm.maintains}."
            )
            if result.cpu_pressure is not None:
                lines.append(
                    f"{arm.name}: some process waited for a CPU in {result.cpu_pressure:.0%} of "
                    "the time; the busier, the more every duration is the machine's."
                )
        return lines

    @property
    def _authors(self) -> str:
        """Who wrote what of the arms compared here."""
        engines = dict.fromkeys(find_arm(result.arm).engine for result in self.results)
        return (
            "The authors of this report wrote its faults and its checks, and of what is compared "
            f"here: {'; '.join(THEIRS[engine] for engine in engines)}. Read what it says in favour "
            "of any of these with that in mind."
        )


def to_terminal(report: Report, console: Console) -> None:
    """From the opening, the verdicts and the warnings to what is not shown."""
    console.print()
    for line in report.header:
        console.print(Text(line, style="dim"))
    console.print()
    console.print(Text(opening(report.scene), style="bold"))
    for result in report.results:
        console.print(f"\nVerdicts: [bold]{result.arm}[/bold]")
        for verdict in result.verdicts:
            console.print(
                Text(f"  {MARKS[verdict.outcome]} ", style=STYLES[verdict.outcome])
                + Text(f"{verdict.invariant:<11} {verdict.rule}: {verdict.summary}")
            )
    for line in warnings(report.results):
        console.print(Text(f"\n{line}", style="yellow"))
    console.print()
    console.print(_table(report.results))
    for title, lines in (
        ("How to read it", terms(report.results)),
        ("What differs", differences(report.results)),
        ("What this does not show", not_shown(report.results)),
    ):
        if not lines:
            continue  # one arm alone differs from nothing
        console.print(f"\n[bold]{title}[/bold]")
        for line in lines:
            console.print(Text(f"  - {line}"))


def _table(results: Sequence[ArmResult]) -> Table:
    table = Table(title="Side by side", title_justify="left", show_lines=False)
    table.add_column("")
    for result in results:
        table.add_column(result.arm)
    for section, members in groupby(rows(results), key=lambda row: row.section):
        table.add_section()
        table.add_row(Text(section, style="bold"))
        for row in members:
            table.add_row(Text(f"  {row.label}"), *(Text(cell) for cell in row.cells))
    return table


def to_markdown(report: Report) -> str:
    """The same as a file to keep."""
    parts = ["# Two workers: what broke, and what each answer cost", ""]
    parts += [f"- {line}" for line in report.header]
    parts += ["", "## The first scene", "", opening(report.scene)]
    for result in report.results:
        parts += ["", f"## Verdicts: {result.arm}", "", "| | invariant | rule | found | times |"]
        parts += ["|---|---|---|---|---|"]
        parts += [
            f"| {v.outcome} | {v.invariant} | {v.rule} | {v.detail} | {v.times} |"
            for v in result.verdicts
        ]
    cautions = warnings(report.results)
    if cautions:
        parts += ["", "## Before you compare durations", "", *(f"- {line}" for line in cautions)]
    names = [result.arm for result in report.results]
    parts += [
        "",
        "## Side by side",
        "",
        f"| | {' | '.join(names)} |",
        "|---" * (len(names) + 1) + "|",
    ]
    for section, members in groupby(rows(report.results), key=lambda row: row.section):
        parts.append(f"| **{section}** |" + " |" * len(names))
        parts += [f"| {row.label.strip()} | {' | '.join(row.cells)} |" for row in members]
    parts += ["", "## How to read it", "", *(f"- {line}" for line in terms(report.results))]
    found = differences(report.results)
    if found:
        parts += ["", "## What differs", "", *(f"- {line}" for line in found)]
    parts += ["", "## What this does not show", ""]
    parts += [f"- {line}" for line in not_shown(report.results)]
    return "\n".join(parts) + "\n"
