"""The ledger: the begin and the end of every call that reached the world.

The world alone writes it and alone assigns `seq` and `t_ns` (CLOCK_MONOTONIC, which all processes
of a host share), so a worker that lies, lags or dies cannot change what is on record. One JSON
object a line, appended. Everybody else reads it through `Ledger`, which pairs each begin with its
end and answers the questions that the checks and the measures ask.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

from two_workers import Fence

CallKind = Literal["model", "tool", "report"]
EndOutcome = Literal["answered", "refused", "failed"]

NO_FENCE: Fence = (0,)
"""Of an engine that has no fence: all owners that a run ever has look the same to the outside."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """Who calls, for which step, under which ownership: taken from the request's headers."""

    run: str
    key: str
    fence: Fence
    attempt: int
    worker: str
    engine: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Begin:
    """A call arrived. `input_hash` covers the request's body; `name` is the tool's or model's."""

    seq: int
    t_ns: int
    call: int
    kind: CallKind
    name: str
    input_hash: str
    identity: Identity


@dataclass(frozen=True, kw_only=True, slots=True)
class End:
    """A call was dealt with. `delivered` is False when the caller had hung up before the reply.

    `refused` is a fence older than one seen for the same key: a zombie's call.
    """

    seq: int
    t_ns: int
    call: int
    outcome: EndOutcome
    delivered: bool
    tokens_in: int = 0
    tokens_out: int = 0
    micro_usd: int = 0


Record = Begin | End


def to_fields(record: Record) -> dict[str, Any]:
    """A record as a JSON object."""
    # Field by field: `asdict` copies deeply, which the world would feel at 2,000 calls a second.
    fields = {name: getattr(record, name) for name in record.__slots__}
    if isinstance(record, Begin):
        who = record.identity
        fields["identity"] = {name: getattr(who, name) for name in who.__slots__}
    return {**fields, "event": "begin" if isinstance(record, Begin) else "end"}


def dump(record: Record) -> str:
    """One line of the file, without its newline."""
    return json.dumps(to_fields(record), separators=(",", ":"))


def load(line: str | bytes) -> Record:
    """The opposite of `dump`."""
    return from_fields(json.loads(line))


def from_fields(fields: dict[str, Any]) -> Record:
    """A record from its JSON object."""
    event = fields.pop("event")
    if event == "end":
        return End(**fields)
    who = fields.pop("identity")
    who["fence"] = tuple(who["fence"])
    return Begin(identity=Identity(**who), **fields)


@dataclass(slots=True)
class Call:
    """One call: its begin, and its end once there is one."""

    begin: Begin
    end: End | None = None

    @property
    def who(self) -> Identity:
        return self.begin.identity

    @property
    def refused(self) -> bool:
        return self.end is not None and self.end.outcome == "refused"

    @property
    def executed(self) -> bool:
        """True when the world did (or began to do) the work: not refused."""
        return not self.refused

    @property
    def delivered(self) -> bool:
        return self.end is not None and self.end.outcome == "answered" and self.end.delivered

    def in_flight_at(self, t_ns: int) -> bool:
        """True when the call had begun and had not been answered at `t_ns`."""
        return self.begin.t_ns <= t_ns and (self.end is None or self.end.t_ns > t_ns)


@dataclass
class Ledger:
    """All records so far, in the order of `seq`."""

    records: list[Record] = field(default_factory=list)
    calls: dict[int, Call] = field(default_factory=dict)

    @classmethod
    def of(cls, records: Iterable[Record]) -> Ledger:
        """A ledger of `records`."""
        ledger = cls()
        for record in records:
            ledger.add(record)
        return ledger

    @classmethod
    def read(cls, path: Path) -> Ledger:
        """The ledger in a file. Raises `ValueError` when it is damaged, or not whole."""
        ledger = cls()
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    ledger.add(load(line))
                except (ValueError, KeyError, TypeError, AttributeError) as error:
                    raise ValueError(
                        f"{path}, line {number}: not the next record of a ledger ({error!r})"
                    ) from error
        ledger.refuse_gaps(path)
        return ledger

    def refuse_gaps(self, path: Path) -> None:
        """Raises `ValueError` unless it begins at the beginning and has every call in between.

        `seq` shows a lost record; the numbers of the calls, one that was taken out with care.
        """
        if not self.records:
            raise ValueError(f"{path}: an empty ledger is no evidence")
        if self.records[0].seq != 1:
            raise ValueError(f"{path}: expected seq 1 first, found {self.records[0].seq}")
        missing = set(range(1, max(self.calls) + 1)) - self.calls.keys()
        if missing:
            raise ValueError(f"{path}: calls missing: {len(missing)}, first number {min(missing)}")

    def add(self, record: Record) -> None:
        """Append the next record. Raises `ValueError` when one is missing: a gap is no evidence."""
        if self.records and record.seq != self.records[-1].seq + 1:
            raise ValueError(f"ledger: expected seq {self.records[-1].seq + 1}, found {record.seq}")
        self.records.append(record)
        if isinstance(record, Begin):
            self.calls[record.call] = Call(record)
        else:
            self.calls[record.call].end = record

    @property
    def last_seq(self) -> int:
        return self.records[-1].seq if self.records else 0

    def in_flight(self, worker: str, t_ns: int) -> list[Call]:
        """The calls of `worker` that were in flight at `t_ns`."""
        return [c for c in self.calls.values() if c.who.worker == worker and c.in_flight_at(t_ns)]

    def of_run(self, run: str) -> Iterator[Call]:
        """The calls of a run, in the order of their begins."""
        return (call for call in self.calls.values() if call.who.run == run)


@dataclass(frozen=True)
class Index:
    """A finished ledger by key and by run: built once, asked often."""

    ledger: Ledger

    @cached_property
    def by_key(self) -> dict[str, list[Call]]:
        return self._grouped("key")

    @cached_property
    def by_run(self) -> dict[str, list[Call]]:
        return self._grouped("run")

    def _grouped(self, attribute: str) -> dict[str, list[Call]]:
        groups: dict[str, list[Call]] = defaultdict(list)
        for call in self.ledger.calls.values():
            groups[cast(str, getattr(call.who, attribute))].append(call)
        return dict(groups)


def run_of(key: str) -> str:
    """The run of a step's key."""
    return key.rpartition("/")[0]


def batch_of(key: str) -> int:
    """The number of the batch that a step belongs to."""
    return int(key.rpartition("/")[2].partition(".")[0])
