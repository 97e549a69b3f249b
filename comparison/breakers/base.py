"""What a breaker does, and how it is brought so that it lands on work in flight."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from comparison.evidence import FaultRecord
from comparison.ledger import Begin
from comparison.plan import FaultKind
from comparison.world.client import WorldClient

CONFIRM = 20.0
"""Seconds in which a fault must be confirmed. It is confirmed at once, or by what it prevents."""


class Breaker(Protocol):
    """One fault, made for its victim."""

    @property
    def kind(self) -> FaultKind: ...

    async def strike(self) -> None:
        """Do it. The victim is in a call whose reply is held."""
        ...

    async def problem(self) -> str | None:
        """After the reply was let go: None once the fault has met its victim, or why it did not."""
        ...

    async def heal(self) -> None:
        """Undo it. Safe to repeat, and after a strike that failed."""
        ...


@dataclass(frozen=True)
class Aim:
    """A call whose reply is held, and whose are the calls that the fault is meant to hit."""

    hold: int
    held: Begin
    victims: Collection[str]


async def bring(breaker: Breaker, world: WorldClient, aim: Aim, *, number: int = 1) -> FaultRecord:
    """Strike while the victim waits for its reply, let the reply go, and see that it landed."""
    before = time.monotonic_ns()
    await breaker.strike()
    after = time.monotonic_ns()
    await world.release(aim.hold)
    problem = await breaker.problem()
    await world.catch_up()
    keys = sorted({c.who.key for v in aim.victims for c in world.ledger.in_flight(v, before)})
    if problem is None and not keys:
        problem = "nobody was at work"
    return FaultRecord(
        number=number,
        kind=breaker.kind,
        point="reply",
        phase=0.0,
        victim=aim.held.identity.worker if len(aim.victims) == 1 else "",
        held_key=aim.held.identity.key,
        before_ns=before,
        after_ns=after,
        in_flight=tuple(keys),
        landed=problem is None,
        problem=problem,
    )
