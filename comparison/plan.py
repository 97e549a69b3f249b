"""The seeded plan of a campaign: the same for every arm, so that arms are compared in pairs.

A seed repeats the *experiment* (questions, faults, their points and phases, latencies), not the
schedule: processes and servers keep their own timing. Each purpose has a random stream of its
own, so that one more kill does not reshuffle the cancellations.

A *cell* is a fault at a crash point. A quick look spreads a few faults over the points of each
kind; a full comparison plans as many as a p95 needs for each cell, or, where that takes too long,
for those alone that the report's headlines are made of.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from typing import TypeVar

from comparison.kinds import CALLING, KINDS, CrashPoint, FaultKind, PlannedFault
from comparison.ledger import CallKind

T = TypeVar("T")
Cell = tuple[FaultKind, CrashPoint]

IMPORTANT: tuple[Cell, ...] = (
    *(("kill", point) for point in ("begin", "during", "reply")),
    ("pause", "reply"),
    ("silence", "reply"),
)  # fmt: skip
"""The cells behind the report's headlines."""

_CALLS: tuple[CallKind, ...] = ("model", "model", "tool")


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
    def kinds(self) -> tuple[FaultKind, ...]:
        """The kinds of faults in it."""
        return tuple(dict.fromkeys(fault.kind for fault in self.faults))

    def without(self, kinds: Collection[FaultKind]) -> Plan:
        """The same plan without faults that cannot be brought to an arm."""
        return replace(self, faults=tuple(f for f in self.faults if f.kind not in kinds))


def stream(seed: int, purpose: str) -> random.Random:
    """The random numbers of one purpose."""
    return random.Random(f"{seed}:{purpose}")


def make_plan(
    *,
    seed: int,
    workers: int,
    investigations: int,
    cells: Sequence[Cell],
    cancellations: int,
    questions: Sequence[str],
) -> Plan:
    """The plan for a seed: a fault for each of `cells`, in random order."""
    chosen = stream(seed, "questions").sample(questions, min(len(questions), investigations))
    order = list(cells)
    stream(seed, "order of faults").shuffle(order)
    calls, phases = stream(seed, "calls"), stream(seed, "phases")
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
                point=point,
                call=calls.choice(_CALLS),
                occurrence=1 if point == "finish" else victims.randint(1, 2 * workers),
                phase=phases.random(),
            )
            for number, (kind, point) in enumerate(order, 1)
        ),
        pending_cancellations=cancellations,
        running_cancellations=cancellations,
    )


def spread(counts: Mapping[FaultKind, int]) -> list[Cell]:
    """So many faults of each kind, in turn at each of its points in which the victim calls."""
    return [
        (kind, point) for kind, count in counts.items() for point in islice(_turns(kind), count)
    ]


def _turns(kind: FaultKind) -> Iterator[CrashPoint]:
    points = KINDS[kind].points
    return cycle([point for point in points if point in CALLING] or points)


def grid(
    samples: int, kinds: Collection[FaultKind] = tuple(KINDS), *, others: int | None = None
) -> list[Cell]:
    """Every cell of `kinds`, `samples` times; those behind no headline `others` times, if given."""
    cells = [(kind, point) for kind in KINDS if kind in kinds for point in KINDS[kind].points]
    fewer = samples if others is None else others
    return [c for c in cells for _ in range(samples if c in IMPORTANT else fewer)]


def blocks(cells: Sequence[Cell], count: int, seed: int) -> list[list[Cell]]:
    """The cells dealt out to `count` campaigns of about the same size, each a mix of everything."""
    dealt = list(cells)
    stream(seed, "blocks").shuffle(dealt)
    return [dealt[first::count] for first in range(count)]


def arm_order(arms: Sequence[T], seed: int) -> list[T]:
    """The arms in the random order in which they run."""
    order = list(arms)
    stream(seed, "order of arms").shuffle(order)
    return order
