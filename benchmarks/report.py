"""A benchmark's report: a table for the terminal, JSON, and its sections of the pages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.results import SOONER, TAKEOVER, Estimate, Finding, Report
from two_workers import BadInput

BENCH, OWNERSHIP = "bench", "ownership"
"""The sections of the pages that a benchmark writes."""


def marks(section: str) -> tuple[str, str]:
    """The lines between which a section stands."""
    return f"<!-- {section} -->", f"<!-- /{section} -->"


def print_table(report: Report, console: Console) -> None:
    """The table of all rows, with their targets."""
    table = Table(title="measured in one run, on one machine")
    for title in ("row", "measure", "found [95 %]", "target", "", "of what"):
        table.add_column(title, overflow="fold")
    for row in report.findings:
        table.add_row(
            row.row, row.measure, figure(row.found, row.unit), row.target, verdict(row), row.note
        )
    console.print(table)
    took = (f"{row} {seconds:.0f}" for row, seconds in report.row_seconds.items())
    console.print(f"{report.seconds:.0f} s; by row: {', '.join(took)}")


def verdict(row: Finding) -> str:
    """In a word."""
    if row.found is None:
        return "not measured"
    return {True: "reached", False: "missed", None: ""}[row.reached]


def figure(found: Estimate | None, unit: str) -> str:
    """A figure with its interval."""
    if found is None:
        return "-"
    interval = ""
    if found.low is not None and found.high is not None:
        interval = f" [{_short(found.low)}–{_short(found.high)}]"
    elif found.low is not None:
        interval = f" [≥ {_short(found.low)}]"
    elif found.high is not None:
        interval = f" [≤ {_short(found.high)}]"
    more = "> " if found.beyond else ""
    return f"{more}{_short(found.value)}{interval} {unit}"


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def write_json(report: Report, path: Path) -> None:
    """Everything that was measured."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(report.model_dump_json(indent=2) + "\n")


def write_section(path: Path, section: str, text: str) -> None:
    """Replace what lies between a section's marks. Raises `BadInput` if they are missing."""
    before, _, after = _parted(path, section)
    begin, end = marks(section)
    path.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")


def read_section(path: Path, section: str) -> str:
    """What lies between a section's marks. Raises `BadInput` if they are missing."""
    _, text, _ = _parted(path, section)
    return text.strip()


def _parted(path: Path, section: str) -> tuple[str, str, str]:
    first, last = marks(section)
    before, begin, rest = path.read_text().partition(first)
    text, end, after = rest.partition(last)
    if not begin or not end:
        raise BadInput(f"{path} has no lines {first!r} and {last!r} to write between")
    return before, text, after


def growth(report: Report) -> str:
    """The curves of growth as tables, for a page that has their picture beside it."""
    parts = [_where(report)]
    for title, points in report.growth.items():
        what, _, by = title.rpartition(", by ")
        parts += [
            "",
            f"| {by} | " + " | ".join(f"{x:,.0f}" for x, _ in points) + " |",
            "|---|" + "---|" * len(points),
            f"| {what} | " + " | ".join(_short(y) for _, y in points) + " |",
        ]
    return "\n".join(parts)


def summary(report: Report) -> str:
    """What has a target, and where a peer is ahead: for a page on which it is one topic of many."""
    with_target = [row for row in report.findings if row.target]
    return "\n".join(
        [
            _where(report) + " Brackets are 95 % intervals.",
            "",
            "| measure | found | target | |",
            "|---|---|---|---|",
            *(
                _cells(_name(row), figure(row.found, row.unit), row.target, verdict(row))
                for row in with_target
            ),
            "",
            "Where a peer is ahead, or the readable path is behind:",
            "",
            *(
                f"- {_name(row)}: {figure(row.found, row.unit)} ({row.note})"
                for row in report.findings
                if _is_behind(row)
            ),
        ]
    )


def _name(row: Finding) -> str:
    return f"{row.row}: {row.measure}"


def _is_behind(row: Finding) -> bool:
    if row.found is None or row.target:
        return False
    return row.found.value < 1 if row.unit == "×" else row.note.endswith(SOONER)


def performance(report: Report) -> str:
    """Every row, and what a reader needs to judge it."""
    return "\n".join(
        [
            _where(report) + " Ratios are within interleaved rounds; brackets are 95 % intervals.",
            "",
            *_table(report.findings),
            "",
            "What was run: "
            + "; ".join(f"*{name}*: {text}" for name, text in report.settings.items())
            + ".",
            "",
            "Versions: " + ", ".join(f"{name} {it}" for name, it in report.versions.items()) + ".",
        ]
    )


def takeovers(report: Report) -> str:
    """Who takes over, and how soon; the other rows of such a run are in its JSON."""
    rows = [row for row in report.findings if row.row == TAKEOVER]
    return "\n".join([_where(report), "", *_table(rows)])


def _table(findings: Sequence[Finding]) -> list[str]:
    return [
        "| row | measure | found | target | | of what |",
        "|---|---|---|---|---|---|",
        *(
            _cells(
                *(row.row, row.measure, figure(row.found, row.unit)),
                *(row.target, verdict(row), row.note),
            )
            for row in findings
        ),
    ]


def _where(report: Report) -> str:
    server = report.server
    return (
        f"Measured on {report.utc[:10]} in one run of {report.seconds / 60:.0f} minutes, on "
        f"{report.machine['cpus']} shared cores ({report.machine['cpu']}), load "
        f"{report.machine['load before']} before and {report.machine['load after']} after; "
        f"PostgreSQL {server['server_version']}, fsync {server['fsync']}, synchronous_commit "
        f"{server['synchronous_commit']}; client, workers and server share the machine. "
        "Limits are unset and no snapshot is held where a row does not say otherwise."
    )


def _cells(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
