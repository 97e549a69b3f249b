"""What is noted of a crowd beside the evidence that every campaign leaves."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from two_workers import Limits


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Errand(_Frozen):
    """A run of the crowd: whose it is, what it was to do, what it may cost and what it cost.

    Money in micro-dollars.
    """

    run: str
    tenant: str
    acts: tuple[str, ...]
    budget: int | None
    cost: int


class Sent(_Frozen):
    """A word sent to a run, `times` times under one id. Its payload is its `number` in the run.

    `moment`: `early`, before anybody waits for it; `parking`, in the instant in which the run goes
    to wait for it; `late`, while it waits. `acknowledged_ns` is None when the run had ended.
    """

    run: str
    number: int
    moment: Literal["early", "parking", "late"]
    times: int
    sent_ns: int
    acknowledged_ns: int | None


class LimitsSet(_Frozen):
    """Limits that were in force from `acknowledged_ns` on, and may have been since `asked_ns`."""

    asked_ns: int
    acknowledged_ns: int
    limits: Limits


class Count(_Frozen):
    """What an engine counts as taken of a resource, and a recount of those who hold it.

    The total (`active`) may be that of others too; everything else is the crowd's alone.
    """

    resource: str
    counted: int
    held: int

    @property
    def leaks(self) -> bool:
        """True when, at rest, something is still taken or the counter is wrong."""
        return self.counted != self.held or (self.held > 0 and self.resource != "active")


class Rest(_Frozen):
    """The engine after the last run has ended. `reserved` in micro-dollars, None if not its way."""

    counts: tuple[Count, ...]
    reserved: int | None


class Notes(_Frozen):
    """All of it. `poison` is the run that kills its workers; `places` is how many runs all workers
    together may have at a time.
    """

    errands: tuple[Errand, ...]
    poison: str
    sent: tuple[Sent, ...]
    limits: tuple[LimitsSet, ...]
    places: int
    rest: Rest
