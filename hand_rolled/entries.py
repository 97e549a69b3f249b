"""What a journal holds: places, outcomes, and how values become text for PostgreSQL.

And what makes two requests the same run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString, NamedTuple

from pydantic import JsonValue

from two_workers.protocol import Run

Statements = Sequence[tuple[LiteralString, Mapping[str, Any]]]


@dataclass(frozen=True)
class WithSQL:
    """What an effect returns to have statements committed together with its record.

    All or nothing, and only while this worker owns the run: exactly once for data that lives in
    the same database. Statements are (text, parameters); keep them short, because the run's row
    stays locked meanwhile.
    """

    value: Any
    statements: Statements = ()


class Place(NamedTuple):
    """Where a step stands in its run: position `i` of batch `n`."""

    batch: int
    position: int


@dataclass(frozen=True)
class Recorded:
    """An outcome in the journal, and what the agent had asked for to get it."""

    fingerprint: str
    outcome: JsonValue


@dataclass(frozen=True)
class OpenStep:
    """What earlier attempts left. `due` is on the local clock, None if at once."""

    failures: int = 0
    deferrals: int = 0
    checkpoint: JsonValue = None
    due: float | None = None


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A step's outcome, as JSON text, on its way into the journal. `cost` in micro-dollars."""

    kind: str
    fingerprint: str
    outcome: str
    succeeded: bool
    attempt: int
    cost: int = 0
    statements: Statements = ()


def as_json(value: JsonValue) -> str:
    """JSON text for a `json` column. Escapes everything that is not ASCII, so that \\u0000 and
    lone surrogates pass. Raises `ValueError` for NaN and infinities."""
    return _ENCODER.encode(value)


_ENCODER = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def as_text(value: str) -> str:
    """Text for a `text` column, which cannot hold NUL or a lone surrogate."""
    return value.replace("\x00", "\\0").encode("utf-8", "backslashreplace").decode()


def is_same(run: Run, other: Run | Mapping[str, Any]) -> bool:
    """True if both ask for the same, whatever their ids and priorities. `other` may be a row."""
    return _content(vars(run)) == _content(vars(other) if isinstance(other, Run) else other)


def _content(run: Mapping[str, Any]) -> str:
    """As JSON, since to Python 1, 1.0 and true are equal."""
    return _CANONICAL.encode({name: run[name] for name in ("kind", "tenant", "payload", "budget")})


_CANONICAL = json.JSONEncoder(sort_keys=True)
