"""A concept of the mapping: the question it answers, and each side's answer.

One TOML file per theme under `concepts/`, in the order of a reader's questions. A record that is
incomplete does not load, so nothing of it can be missing on the screen.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from two_workers import BadInput

CONCEPTS = Path(__file__).parent / "concepts"
THEMES = ("ownership", "liveness", "writes", "steering", "failure", "limits")


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Broken(_Record):
    """The version that looks right, and how it fails. `guard` names what `break` removes."""

    version: str
    failure: str
    guard: str | None = None


class ByHand(_Record):
    """The table's answer. `reference` is `module:NAME`; `lacks` is what it does not give you."""

    short: str = Field(max_length=110)
    long: str
    statement: str
    reference: str
    lacks: str


class OnTemporal(_Record):
    """Temporal's answer. `owner` says who keeps the state; `reference` is where we use it."""

    short: str = Field(max_length=110)
    long: str
    api: str
    setting: str
    owner: str
    reference: str
    lacks: str


class Evidence(_Record):
    """Which scenario shows the concept, and what of its timeline to show.

    `columns` are the columns of the run's row, `events` the types of history events.
    """

    scenario: str
    columns: tuple[str, ...] = ()
    events: tuple[str, ...] = ()


class Concept(_Record):
    """One row of the mapping."""

    id: str = Field(pattern=r"^[a-z][a-z-]*$")
    title: str = Field(max_length=24)
    question: str
    invariants: tuple[str, ...] = ()
    rungs: tuple[int, ...] = ()
    broken: Broken
    by_hand: ByHand
    temporal: OnTemporal
    better: Literal["table", "temporal", "neither"]
    verdict: str
    cookbook: str
    sources: tuple[str, ...] = Field(min_length=1)
    evidence: Evidence


class Theme(_Record):
    """Concepts that answer one of the reader's questions."""

    title: str
    concept: tuple[Concept, ...]


@cache
def themes() -> tuple[Theme, ...]:
    """All themes, in reading order. Raises `BadInput` with the file and the field at fault."""
    return tuple(_read(CONCEPTS / f"{name}.toml") for name in THEMES)


def concepts() -> tuple[Concept, ...]:
    """All concepts, in reading order."""
    return tuple(concept for theme in themes() for concept in theme.concept)


def find_concept(name: str) -> Concept:
    """The concept with this id. Raises `BadInput` with the ids that exist."""
    for concept in concepts():
        if concept.id == name:
            return concept
    known = ", ".join(concept.id for concept in concepts())
    raise BadInput(f"unknown concept {name!r}; known: {known}")


def _read(path: Path) -> Theme:
    try:
        return Theme.model_validate(tomllib.loads(path.read_text()))
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        raise BadInput(f"{path.name}: {error}") from error
