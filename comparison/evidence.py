"""What a campaign leaves behind: one directory an arm, from which everything else is computed.

    evidence.json     settings, starts, ends, faults, cancellations, ownerships, accepted writes
    ledger.jsonl      the world's own record
    logs/             what each process said, on the same clock
    crowd/            the same three of the crowd beside it

Times are nanoseconds of CLOCK_MONOTONIC, the ledger's clock. Times that an engine recorded by the
wall clock are moved onto it with the offset measured during the campaign (`Clock`).
"""

from __future__ import annotations

import time
from collections import defaultdict
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue

from comparison.crowd.notes import Notes
from comparison.kinds import SPARING, CrashPoint, FaultKind
from comparison.ledger import Index, Ledger, run_of
from two_workers import Fence, RunState, StepRecord

CLOCKS_NS = 2_000_000
"""Within this much the wall clock of a record and the ledger's clock are not told apart."""

CancelCase = Literal["pending", "running", "orphan", "struck"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Clock(_Frozen):
    """How far this host's wall clock is ahead of its monotonic clock, and by how much it moved."""

    offset_ns: int
    drift_ns: int = 0

    @classmethod
    def now(cls) -> Clock:
        return cls(offset_ns=time.time_ns() - time.monotonic_ns())

    def checked(self) -> Clock:
        """The same offset, with how far the wall clock has moved since."""
        return self.model_copy(update={"drift_ns": Clock.now().offset_ns - self.offset_ns})

    def mono(self, wall: datetime) -> int:
        """A wall-clock time on the ledger's clock."""
        return round(wall.timestamp() * 1e9) - self.offset_ns


class Start(_Frozen):
    """A start that the engine acknowledged at `t_ns`. `twin` runs saw no fault."""

    run: str
    question: int
    t_ns: int
    twin: bool


class End(_Frozen):
    """How a run ended, as first seen, and as seen again after everything was over."""

    run: str
    state: RunState
    t_ns: int
    result: JsonValue
    failure: str | None
    steps: tuple[StepRecord, ...]
    state_again: RunState
    result_again: JsonValue


class FaultRecord(_Frozen):
    """One fault: what was done to whom, when, and whether it landed on work in flight.

    `in_flight` are the keys that the victim owned and was calling, by the ledger, when the fault
    came; `answered` is the key of the step that it had just done, at a point between two calls.
    `owned` are the runs of both. `victim` is empty when everybody was hit. In time: `aimed_ns` is
    when its crash point was first waited for, `before_ns` and `after_ns` enclose the strike,
    `confirmed_ns` is when it was known to have met its victim, `resumed_ns` when the victim could
    go on (the SIGCONT of a pause, the end of a silence or of a stall), and `healed_ns` when nothing
    of it was left: the network whole, another worker in a dead one's place.
    `late_bytes` is what a silence had withheld from the server, and then let through. `problem`
    says why a fault that did not land did not. A fault that missed is tried again, as another
    record with the same `number`.
    """

    number: int
    kind: FaultKind
    point: CrashPoint
    phase: float
    victim: str = ""
    held_key: str | None = None
    aimed_ns: int | None = None
    before_ns: int = 0
    after_ns: int = 0
    confirmed_ns: int | None = None
    resumed_ns: int | None = None
    healed_ns: int | None = None
    late_bytes: int = 0
    in_flight: tuple[str, ...] = ()
    answered: str | None = None
    landed: bool = False
    problem: str | None = None

    @property
    def owned(self) -> tuple[str, ...]:
        """The runs that the victim was working on."""
        keys = self.in_flight if self.answered is None else (*self.in_flight, self.answered)
        return tuple(sorted({run_of(key) for key in keys}))

    @property
    def spares_its_victim(self) -> bool:
        """True when the victim lives on, and may act on what it no longer owns."""
        return self.kind in SPARING


class Cancellation(_Frozen):
    """A cancellation: what the run was when it was asked for, and when each side knew.

    `struck`: a fault hit its worker between the acknowledgement and the run's end.
    """

    run: str
    case: CancelCase
    state_before: RunState
    requested_ns: int
    acknowledged_ns: int
    ended_ns: int | None
    state_after: RunState


class Ownership(_Frozen):
    """A worker owned a run (hand_rolled) or a step (Temporal) from `since_ns` on.

    `what` is the run's id or the step's key. `cause` says in the engine's words how it began.
    `worker` is None when the run was taken from its owner and given to nobody.
    """

    what: str
    fence: Fence
    worker: str | None
    since_ns: int
    cause: str


class Write(_Frozen):
    """An outcome that the engine accepted and recorded for a step."""

    key: str
    fence: Fence
    worker: str
    t_ns: int


class RefusedWrite(_Frozen):
    """A write that the engine refused because its owner was no longer the owner."""

    worker: str
    t_ns: int
    line: str


class LateRecord(_Frozen):
    """A record that a silence had withheld: let through to the server at `passed_ns`.

    `what` is named as in `Ownership`. `outcome` is the server's word, None if none was seen, since
    the connection was gone: then it is not known to have arrived.
    """

    worker: str
    what: str
    passed_ns: int
    outcome: Literal["accepted", "refused", "failed"] | None


class Load(_Frozen):
    """What the server counted of its own work: in the fault-free twin, in the whole campaign, or
    while nothing but heartbeats went on (`quiet`)."""

    window: Literal["twin", "whole", "quiet"]
    seconds: float
    counts: dict[str, float]


class Evidence(_Frozen):
    """Everything that the checks and the measures may look at.

    `late_records` is None where nobody followed what a silence withheld.
    `actions` are those that Temporal Cloud would bill, by run and kind, from the histories.
    `crowd` is what only the crowd beside a campaign has.
    `ledger_seq` is the number of the ledger's last record when this was written down.
    `cpu_pressure` is the share of the campaign's time in which some process waited for a CPU.
    """

    arm: str
    engine: str
    settings: dict[str, str]
    clock: Clock
    starts: tuple[Start, ...]
    ends: tuple[End, ...]
    faults: tuple[FaultRecord, ...]
    cancellations: tuple[Cancellation, ...]
    ownerships: tuple[Ownership, ...]
    writes: tuple[Write, ...]
    refused_writes: tuple[RefusedWrite, ...]
    late_records: tuple[LateRecord, ...] | None = None
    healed_ns: int
    converged_ns: int | None
    convergence_bound: float
    ledger_seq: int | None = None
    server: dict[str, JsonValue] = {}
    cpu_pressure: float | None = None
    loads: tuple[Load, ...] = ()
    actions: dict[str, dict[str, int]] = {}
    crowd: Notes | None = None


class Case(BaseModel):
    """Evidence with its ledger: what a check is given. `crowd` is what went on beside it."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)
    evidence: Evidence
    calls: Index
    crowd: Case | None = None

    @cached_property
    def claims(self) -> dict[str, list[Ownership]]:
        """What is on record of owners, by run or by step, in the order of time."""
        claims: dict[str, list[Ownership]] = defaultdict(list)
        for ownership in sorted(self.evidence.ownerships, key=lambda owned: owned.since_ns):
            claims[ownership.what].append(ownership)
        return dict(claims)

    @classmethod
    def read(cls, directory: Path) -> Case:
        """What an earlier campaign left under `directory`."""
        text = (directory / "evidence.json").read_text()
        ledger = Ledger.read(directory / "ledger.jsonl")
        beside = directory / "crowd"
        return cls(
            evidence=Evidence.model_validate_json(text),
            calls=Index(ledger),
            crowd=cls.read(beside) if beside.exists() else None,
        )

    def write(self, directory: Path) -> None:
        """Keep the evidence; the ledger is already there, written by the world."""
        half = directory / "evidence.json.half"
        whole = self.evidence.model_copy(update={"ledger_seq": self.calls.ledger.last_seq})
        half.write_text(whole.model_dump_json(indent=1))
        half.replace(directory / "evidence.json")  # whole, or not there
