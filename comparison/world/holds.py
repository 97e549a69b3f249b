"""Holds: stop a chosen call at a chosen point until the harness lets it go.

armed → hit (a call matched and waits) → released. Releasing an armed hold disarms it.
"""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel, ConfigDict

from comparison.ledger import Begin, CallKind

HoldPoint = Literal["begin", "during", "reply"]


class Rule(BaseModel):
    """Which call to hold: the `occurrence`-th that matches every field given, or `every` one.

    `begin` holds a call before any work is done for it; `during` when half of its time is over;
    `reply` when the work is done and paid, and only the answer has not left.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    at: HoldPoint
    run: str | None = None
    key: str | None = None
    kind: CallKind | None = None
    worker: str | None = None
    engine: str | None = None
    occurrence: int = 1
    every: bool = False

    def matches(self, begin: Begin) -> bool:
        """True when every field given is the call's."""
        who = begin.identity
        return (
            self.run in (None, who.run)
            and self.key in (None, who.key)
            and self.kind in (None, begin.kind)
            and self.worker in (None, who.worker)
            and self.engine in (None, who.engine)
        )


@dataclass
class Hold:
    """One armed rule and what became of it. `call` is the first that it stopped."""

    id: int
    rule: Rule
    seen: int = 0
    call: Begin | None = None
    hit: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)


class Holds:
    """All holds of one world."""

    def __init__(self) -> None:
        self._ids = itertools.count(1)
        self._holds: dict[int, Hold] = {}

    def arm(self, rule: Rule) -> Hold:
        """Hold the next call that fits `rule`."""
        hold = Hold(next(self._ids), rule)
        self._holds[hold.id] = hold
        return hold

    def get(self, hold_id: int) -> Hold:
        """Raises `KeyError` for an unknown hold."""
        return self._holds[hold_id]

    def release(self, hold_id: int) -> Hold:
        """Let the held call go on, or disarm. Safe to repeat."""
        hold = self.get(hold_id)
        hold.released.set()
        return hold

    def release_all(self) -> None:
        """Heal: nothing is held and nothing will be."""
        for hold in self._holds.values():
            hold.released.set()

    async def pass_through(self, point: HoldPoint, begin: Begin) -> None:
        """Called for every call at every point; returns when no hold stops it."""
        for hold in self._holds.values():
            spent = hold.call is not None and not hold.rule.every
            if spent or hold.released.is_set() or hold.rule.at != point:
                continue
            if not hold.rule.matches(begin):
                continue
            hold.seen += 1
            if hold.rule.every or hold.seen == hold.rule.occurrence:
                hold.call = hold.call or begin
                hold.hit.set()
                await hold.released.wait()
                return
