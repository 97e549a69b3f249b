"""What was found for one lease on one arm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from comparison.stats import Summary, Wait, summarise

SpellKind = Literal["kill", "pause", "stall"]
SLOW: tuple[SpellKind, ...] = ("pause", "stall")


@dataclass(frozen=True, kw_only=True)
class Spell:
    """One fault, in seconds: how long it lasted (None: for ever), and when its run was taken over.

    `taken` is None when nobody had taken the run over in the `watched` seconds after the fault.
    """

    kind: SpellKind
    lasted: float | None
    taken: float | None
    watched: float


@dataclass(frozen=True, kw_only=True)
class Point:
    """One lease on one arm. `predicted` bounds the detection; all in seconds.

    `heartbeats` reached the server, and `writes` are its transactions that wrote, both in a minute
    for each run while every run waits for its model; None where the server does not count them.
    """

    arm: str
    lease: float
    gap: float
    predicted: tuple[float, float]
    spells: tuple[Spell, ...]
    heartbeats: float | None
    writes: float | None

    @property
    def detection(self) -> Summary | None:
        """From a kill to the takeover."""
        kills = [spell for spell in self.spells if spell.kind == "kill"]
        return summarise(
            [[Wait(s.watched, over=False) if s.taken is None else Wait(s.taken)] for s in kills]
        )

    def mistakes(self, kind: SpellKind) -> tuple[int, int]:
        """Of how many spells that a worker survived its run was taken, and how many there were."""
        mine = [spell for spell in self.spells if spell.kind == kind]
        return sum(spell.taken is not None for spell in mine), len(mine)

    def edge(self, kind: SpellKind) -> tuple[float | None, float | None]:
        """The shortest spell that cost its worker the run and the longest that did not, in leases.

        Between the two lies what a worker of this arm may be slow.
        """
        mine = [s for s in self.spells if s.kind == kind and s.lasted is not None]
        cost = [s.lasted / self.lease for s in mine if s.lasted and s.taken is not None]
        kept = [s.lasted / self.lease for s in mine if s.lasted and s.taken is None]
        return min(cost, default=None), max(kept, default=None)
