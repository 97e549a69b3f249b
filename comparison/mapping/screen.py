"""One concept on one screen: the question, the broken version, both answers, and the evidence."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from comparison.ladder.rungs import find_rung
from comparison.mapping.concept import Concept
from comparison.mapping.recording import Check, Recording, Side
from comparison.mapping.references import resolve
from comparison.mapping.timeline import lines

NAMES = {"hand_rolled": "by hand", "temporal": "Temporal"}
_PLACES = {"harness": "bold", "world": "green", "engine": "cyan"}
SIDE_BY_SIDE = 110
"""Columns from which on the two timelines stand beside each other."""


def concept_screen(
    concept: Concept, recording: Recording, broken: Recording | None, *, width: int
) -> RenderableType:
    """Everything about one concept. `broken` is the same scenario without the guard."""
    return Group(
        Text(concept.title, style="bold reverse"),
        Text(concept.question, style="bold"),
        "",
        _facts(concept),
        "",
        Rule(f"evidence: {recording.title}", align="left", style="dim"),
        Text(provenance(recording), style="dim"),
        *_timelines(recording, concept, width),
        *(_broken_part(broken, concept) if broken else ()),
    )


def _facts(concept: Concept) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold cyan", no_wrap=True)
    grid.add_column()
    for label, text in _rows(concept):
        grid.add_row(label, text)
    return grid


def _rows(concept: Concept) -> Iterator[tuple[str, str]]:
    yield "broken", f"{concept.broken.version}\n{concept.broken.failure}"
    yield "", ""
    hand, temporal = concept.by_hand, concept.temporal
    yield "by hand", hand.long.strip()
    yield "  where", f"{hand.statement} · {resolve(hand.reference)}"
    yield "  lacks", hand.lacks
    yield "", ""
    yield "Temporal", temporal.long.strip()
    yield "  API", temporal.api
    yield "  setting", temporal.setting
    yield "  state", f"kept by {temporal.owner}"
    yield "  where", str(resolve(temporal.reference))
    yield "  lacks", temporal.lacks
    yield "", ""
    yield "verdict", concept.verdict
    yield "holds", ", ".join(concept.invariants)
    if concept.rungs:
        yield "ladder", "\n".join(rung_line(number) for number in concept.rungs)
    if concept.broken.guard:
        yield "try it", f"two-workers break {concept.broken.guard}"
    yield "cookbook", concept.cookbook
    yield "sources", "\n".join(concept.sources)


def rung_line(number: int) -> str:
    """A rung of the ladder, and how to climb it."""
    return f"{find_rung(number).title}: two-workers ladder --rung {number}"


def provenance(recording: Recording) -> str:
    """When and on what it ran."""
    versions = ", ".join(f"{name} {version}" for name, version in recording.versions.items())
    return f"run on {recording.recorded_at:%Y-%m-%d %H:%M} UTC with {versions}"


def _timelines(recording: Recording, concept: Concept, width: int) -> Iterator[RenderableType]:
    sides = [side for side in recording.sides if lines(side, concept)]
    if width >= SIDE_BY_SIDE and len(sides) == 2:
        grid = Table.grid(padding=(0, 2), expand=True)
        for _ in sides:
            grid.add_column(ratio=1)
        grid.add_row(*(Group(*_timeline(side, concept)) for side in sides))
        yield grid
        return
    for side in sides:
        yield from _timeline(side, concept)


def _timeline(side: Side, concept: Concept) -> Iterator[RenderableType]:
    yield ""
    yield Text(NAMES.get(side.engine, side.engine), style="bold")
    grid = Table.grid(padding=(0, 1))
    grid.add_column(justify="right", style="dim", no_wrap=True)
    grid.add_column()
    for line in lines(side, concept):
        grid.add_row(f"{line.t:.2f}", Text(line.text, style=_PLACES[line.place]))
    yield grid
    yield ""
    for name, value in side.facts.items():
        yield Padding(Text(f"{name}: {plain(value)}"), (0, 0, 0, 2))
    for check in side.checks:
        yield Padding(check_line(check), (0, 0, 0, 2))


def check_line(check: Check) -> Text:
    """A check, green or red, with what was found when it does not hold."""
    verdict = Text("holds", style="green") if check.holds else Text("FAILS", style="bold red")
    found = "" if check.holds else f" (found: {check.found})"
    return Text.assemble(verdict, f" {check.invariant} {check.says}{found}")


def _broken_part(recording: Recording, concept: Concept) -> Iterator[RenderableType]:
    yield ""
    yield Rule(f"the same without the guard: {recording.title}", align="left", style="dim")
    for side in recording.sides:
        yield from _timeline(side, concept)


def plain(value: object) -> str:
    """A fact's value as text."""
    if isinstance(value, dict):
        return ", ".join(f"{k} {v}" for k, v in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)
