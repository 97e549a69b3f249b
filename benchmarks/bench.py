"""One benchmark under way: where it runs, how long it may take, and what it has found so far."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.databases import Server
from benchmarks.ratios import ratio
from benchmarks.results import Estimate, Finding, Rounds
from benchmarks.targets import Target

UNDISTURBED = "limits unset, no snapshot held"


@dataclass
class Bench:
    """Rows add to it what they find."""

    server: Server
    directory: Path
    quick: bool
    say: Callable[[str], None]
    absurd_sql: Path | None = None
    findings: list[Finding] = field(default_factory=list)
    rounds: list[Rounds] = field(default_factory=list)
    samples: dict[str, Sequence[float]] = field(default_factory=dict)
    growth: dict[str, Sequence[tuple[float, float]]] = field(default_factory=dict)
    row_seconds: dict[str, float] = field(default_factory=dict)
    failures: int = 0

    def size(self, full: int, quick: int) -> int:
        """How much of something to do."""
        return quick if self.quick else full

    def found(
        self,
        row: str,
        measure: str,
        figure: Estimate | None,
        target: Target | None,
        note: str,
        *,
        unit: str = "×",
    ) -> None:
        """Add a row to the table."""
        reached = None if figure is None or target is None else target.is_reached(figure)
        shown = "-" if figure is None else f"{figure.value:,.3g}"
        self.say(f"{row}, {measure}: {shown} {unit if target is None else f'({target})'}; {note}")
        self.findings.append(
            Finding(
                row=row,
                measure=measure,
                found=figure,
                unit=unit if target is None else target.unit,
                target="" if target is None else str(target),
                reached=reached,
                note=note,
            )
        )

    def failed(self, row: str, measure: str, error: Exception) -> None:
        """Add a row for what could not be measured, and say why."""
        self.say(f"{row}, {measure} failed: {error}")
        note = f"failed: {type(error).__name__}: {_last_words(error)}"
        self.findings.append(
            Finding(
                row=row, measure=measure, found=None, unit="", target="", reached=None, note=note
            )
        )
        self.failures += 1

    def compared(
        self,
        row: str,
        found: Rounds,
        ours: str,
        theirs: str,
        target: Target | None,
        *,
        under: str = UNDISTURBED,
    ) -> None:
        """Add a row for the ratio of two contenders; `under` says what else was going on."""
        mine, other = found.rates[ours], found.rates[theirs]
        rates = f"{_middle(mine):,.0f} against {_middle(other):,.0f} {found.unit}"
        note = f"{rates}; {_counts(found, ours, theirs)}; {under}"
        self.found(row, f"{ours} over {theirs}", ratio(mine, other), target, note)


Row = Callable[[Bench], Awaitable[None]]


def _middle(rates: Sequence[float]) -> float:
    return sorted(rates)[len(rates) // 2]


def _counts(found: Rounds, ours: str, theirs: str) -> str:
    mine, other = found.counts[ours], found.counts[theirs]
    what = found.unit.removesuffix("/s")
    return f"{mine:,} {what} each" if mine == other else f"{mine:,} against {other:,} {what}"


def _last_words(error: Exception) -> str:
    """The last line with letters in it; PostgreSQL ends with one that only points at a place."""
    lines = [line.strip() for line in str(error).splitlines()]
    return next((line for line in reversed(lines) if re.search("[a-zA-Z]", line)), "no words")
