"""The faults and the crash points by name, and what each fault does to its victim.

Data only: the plan draws from it, the breakers carry it out, the checks judge by it.

A *crash point* is where a worker is when it is struck. It is reached by stopping something that
can be stopped from outside, the same on every engine: a call in the world, or a request in the
proxy between the worker and its server. `comparison.breakers.points` says how, and how each is
confirmed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from comparison.ledger import CallKind

FaultKind = Literal[
    "kill",
    "kill+cancel",
    "pause",
    "silence",
    "hang",
    "mute",
    "deaf",
    "reset",
    "half-close",
    "cut",
    "sessions",
    "restart",
    "stall",
    "drain",
    "skew",
]
"""Only the ladder plans a `hang`."""

CrashPoint = Literal[
    "begin", "during", "reply", "record", "between", "heartbeat", "cancel", "finish", "idle"
]

POINTS: dict[CrashPoint, str] = {
    "begin": "before the call's work",
    "during": "while the call is under way",
    "reply": "answer paid, not yet with the worker",
    "record": "record on its way to the server",
    "between": "recorded, next step not begun",
    "heartbeat": "heartbeat on its way to the server",
    "cancel": "cancellation acknowledged, run not ended",
    "finish": "handing in the report",
    "idle": "no call in flight, asking for work",
}

CALLING: tuple[CrashPoint, ...] = ("begin", "during", "reply", "heartbeat", "finish")
"""The points at which the victim is in a call of a run that it must then lose, if it loses any."""
EVERYWHERE: tuple[CrashPoint, ...] = tuple(POINTS)
WITH_SOMETHING_TO_RECORD: tuple[CrashPoint, ...] = ("reply", "finish")
"""Where a worker that is cut off has something to tell its server, which arrives too late."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What one fault does, as far as the plan and the checks must know.

    `points`: where it is brought; the first of them is where it is brought if it is brought once.
    `takes_away`: its victim must lose its work (after another fault it may well keep it).
    `spares`: its victim lives on, and may act on what it no longer owns.
    `returns`: its victim is out of action for a while, and comes back.
    `hits_all`: every worker is a victim; `joins`: the victim is a worker that joins.
    `lasting`: it goes on until somebody else has the work, and is healed then.
    `ours`: it can be brought only to a server that the harness has started itself.
    `postgres`: it exists only where the server is PostgreSQL.
    """

    what: str
    points: tuple[CrashPoint, ...]
    takes_away: bool = False
    spares: bool = False
    returns: bool = False
    hits_all: bool = False
    joins: bool = False
    lasting: bool = False
    ours: bool = True
    postgres: bool = False


KINDS: dict[FaultKind, Kind] = {
    "kill": Kind(
        what="SIGKILL",
        points=EVERYWHERE,
        takes_away=True,
        ours=False,
    ),
    "kill+cancel": Kind(
        what="SIGKILL, then the orphan is cancelled",
        points=("begin", "during", "reply"),
        takes_away=True,
        ours=False,
    ),
    "pause": Kind(
        what="SIGSTOP until somebody else has the work, then SIGCONT",
        points=("reply", *(point for point in EVERYWHERE if point != "reply")),
        takes_away=True,
        spares=True,
        returns=True,
        lasting=True,
        ours=False,
    ),
    "silence": Kind(
        what="nothing passes between a worker and its server",
        points=WITH_SOMETHING_TO_RECORD,
        takes_away=True,
        spares=True,
        returns=True,
        lasting=True,
    ),
    "mute": Kind(
        what="nothing that a worker says reaches its server",
        points=WITH_SOMETHING_TO_RECORD,
        takes_away=True,
        spares=True,
        returns=True,
        lasting=True,
    ),
    "deaf": Kind(
        what="nothing that its server says reaches a worker",
        points=WITH_SOMETHING_TO_RECORD,
        spares=True,
        returns=True,
        lasting=True,
    ),
    "reset": Kind(
        what="RST on all of a worker's connections",
        points=("reply", "record", "heartbeat"),
        spares=True,
    ),
    "half-close": Kind(
        what="FIN towards the server on all of a worker's connections",
        points=("reply", "heartbeat"),
        spares=True,
    ),
    "cut": Kind(
        what="a step is recorded, and the server's word of it never arrives",
        points=("reply",),
        spares=True,
    ),
    "sessions": Kind(
        what="the database ends the sessions of all workers",
        points=("during", "reply"),
        hits_all=True,
        postgres=True,
    ),
    "restart": Kind(
        what="the server crashes under everybody and comes back on its data",
        points=("during", "reply", "finish"),
        hits_all=True,
    ),
    "stall": Kind(
        what="a worker's event loop stands still, its other threads do not",
        points=("during", "reply"),
        spares=True,
        returns=True,
        ours=False,
    ),
    "drain": Kind(
        what="SIGTERM: a worker is asked to stop, as by a deployment",
        points=("during", "reply", "idle"),
        ours=False,
    ),
    "skew": Kind(
        what="a worker joins whose wall clock is minutes off",
        points=("idle",),
        joins=True,
        ours=False,
    ),
}
"""All that a campaign can plan."""


@dataclass(frozen=True, kw_only=True)
class PlannedFault:
    """A fault to come: the victim is whoever makes the `occurrence`-th call of `call` from now on,
    as far as the point has to do with a call.

    The fault comes after `phase` (0 to 1) of a renewal gap more, so that kills fall evenly between
    two heartbeats.
    """

    number: int
    kind: FaultKind
    point: CrashPoint
    call: CallKind
    occurrence: int
    phase: float


SPARING = frozenset(name for name, kind in KINDS.items() if kind.spares)
TAKEN_AWAY = frozenset(name for name, kind in KINDS.items() if kind.takes_away)
JOINING = frozenset(name for name, kind in KINDS.items() if kind.joins)
DEADLY: frozenset[FaultKind] = frozenset({"kill", "kill+cancel", "drain"})
"""After these the victim makes no further call."""
