"""The seeded plan of a campaign: the same for every arm, so that arms are compared in pairs.

A seed repeats the *experiment* (questions, faults, their points and phases, latencies), not the
schedule: processes and servers keep their own timing. Each purpose has a random stream of its
own, so that one more kill does not reshuffle the cancellations.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from comparison.ledger import CallKind
from comparison.world.holds import HoldPoint

T = TypeVar("T")

FaultKind = Literal[
    "kill",
    "kill+cancel",
    "pause",
    "silence",
    "hang",
    "mute",
    "deaf",
    "reset",
    "half close",
    "cut",
    "sessions",
    "restart",
    "stall",
    "drain",
    "idle pause",
    "skew",
]
"""`silence`: nothing passes between a worker and its server. Only the ladder plans a `hang`;
those from `mute` on are brought by `comparison.breakers`."""


@dataclass(frozen=True, kw_only=True)
class PlannedFault:
    """A fault to come: the victim is whoever makes the `occurrence`-th call of `call` from now on.

    The call is held at `point`; the fault comes after `phase` (0 to 1) of a renewal gap more, so
    that kills fall evenly between two heartbeats.
    """

    number: int
    kind: FaultKind
    point: HoldPoint
    call: CallKind
    occurrence: int
    phase: float


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What one campaign does."""

    seed: int
    workers: int
    questions: tuple[str, ...]
    investigations: int
    open_runs: int
    faults: tuple[PlannedFault, ...]
    pending_cancellations: int
    running_cancellations: int

    @property
    def silences(self) -> int:
        """How many faults need a proxy between a worker and its server."""
        return sum(fault.kind == "silence" for fault in self.faults)

    def without_silences(self) -> Plan:
        """The same plan where no proxy may be put before the server."""
        return replace(self, faults=tuple(f for f in self.faults if f.kind != "silence"))


def stream(seed: int, purpose: str) -> random.Random:
    """The random numbers of one purpose."""
    return random.Random(f"{seed}:{purpose}")


def make_plan(
    *,
    seed: int,
    workers: int,
    investigations: int,
    kills: int,
    pauses: int,
    silences: int,
    cancellations: int,
    questions: Sequence[str],
) -> Plan:
    """The plan for a seed. One of the kills also has its orphan cancelled."""
    chosen = stream(seed, "questions").sample(questions, min(len(questions), investigations))
    kinds: list[FaultKind] = ["pause"] * pauses
    kinds += ["silence"] * silences
    kinds += ["kill"] * max(kills - 1, 0)
    kinds += ["kill+cancel"] * min(kills, 1)
    stream(seed, "order of faults").shuffle(kinds)
    points = stream(seed, "crash points")
    phases = stream(seed, "phases")
    victims = stream(seed, "victims")
    return Plan(
        seed=seed,
        workers=workers,
        questions=tuple(chosen),
        investigations=investigations,
        open_runs=2 * workers,
        faults=tuple(
            PlannedFault(
                number=number,
                kind=kind,
                point=_point(kind, points),
                call=points.choice(("model", "model", "tool")),
                occurrence=victims.randint(1, 2 * workers),
                phase=phases.random(),
            )
            for number, kind in enumerate(kinds, 1)
        ),
        pending_cancellations=cancellations,
        running_cancellations=cancellations,
    )


def _point(kind: FaultKind, chance: random.Random) -> HoldPoint:
    """Where the fault strikes. A silence comes just before the reply, so that the worker has
    something to record, and the record is what arrives too late."""
    drawn: HoldPoint = chance.choice(("begin", "reply"))
    return "reply" if kind == "silence" else drawn


def arm_order(arms: Sequence[T], seed: int) -> list[T]:
    """The arms in the random order in which they run."""
    order = list(arms)
    stream(seed, "order of arms").shuffle(order)
    return order
