"""What a benchmark found: the records behind the table, the JSON and the plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ConfigDict

TAKEOVER = "takeover after SIGKILL"
"""The row that a run about ownership alone writes into a page."""

SOONER = "sooner than hand_rolled"
"""How the note of a peer's row ends where the peer is ahead."""


class Record(BaseModel):
    """Frozen, and strict about its fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Estimate(Record):
    """A figure and its 95 % interval; `low` and `high` are None when `n` carries none.

    `beyond`: what was waited for had not happened by then; the figure is more than `value`.
    """

    value: float
    low: float | None
    high: float | None
    n: int
    beyond: bool = False


class Finding(Record):
    """One row of the table: what was measured, and whether its target was reached.

    `target` is in words; `reached` is None when the row has no target, or `found` is missing;
    `note` says what a reader needs to judge the figure, or why there is none.
    """

    row: str
    measure: str
    found: Estimate | None
    unit: str
    target: str
    reached: bool | None
    note: str


class Rounds(Record):
    """Rates of one contest, by contender, one per round; each over `counts` units of work."""

    contest: str
    unit: str
    rates: Mapping[str, Sequence[float]]
    counts: Mapping[str, int] = {}


class Report(Record):
    """A whole benchmark. `row_seconds` is how long each of its rows took to measure."""

    utc: str
    quick: bool
    seconds: float
    machine: Mapping[str, str]
    server: Mapping[str, str]
    versions: Mapping[str, str]
    settings: Mapping[str, str]
    findings: Sequence[Finding]
    rounds: Sequence[Rounds]
    samples: Mapping[str, Sequence[float]]
    growth: Mapping[str, Sequence[tuple[float, float]]]
    row_seconds: Mapping[str, float] = {}
