"""One run on the fast path: it may think ahead of the disk, but not act.

An agent's own code has no side effects: that is the contract of the seam. So when a step is done,
its record is handed to the next flush and the agent is asked at once what it wants next. If that
is another step, the run waits here until the record is durable before the step begins. If the agent
returned, its last record and its end go to disk in the same commit. Nothing is told to anybody
before the commit, so a crash in between only repeats thinking.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, LiteralString

from hand_rolled.database import Row
from hand_rolled.effects import Effects, Later
from hand_rolled.entries import Entry, OpenStep, Place, Recorded
from hand_rolled.fast.commit import End, GroupCommit, Write
from hand_rolled.handler import Handler, Parked
from hand_rolled.journal import RECORDED, Journal
from hand_rolled.lease import LeaseLost
from hand_rolled.lifecycle import FINISH
from two_workers.apps import is_wait
from two_workers.steps import Failed, Step, Succeeded


@dataclass
class FastJournal(Journal):
    """The journal of one run whose records and end are committed in groups."""

    group: GroupCommit = field(kw_only=True)
    _unsettled: list[Write] = field(default_factory=list, init=False)
    _is_new: bool = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._is_new = self.lease.generation == 1

    async def load(self) -> tuple[dict[Place, Recorded], dict[Place, OpenStep]]:
        """At the beginning of the first generation there can be nothing yet."""
        return ({}, {}) if self._is_new else await super().load()

    def record_soon(self, place: Place, entry: Entry) -> None:
        """Record with the next flush; `settled` waits for it."""
        self._is_new = False
        write = self.group.add(self.lease, record=(place, entry))
        if write not in self._unsettled:
            self._unsettled.append(write)

    async def record(self, place: Place, entry: Entry) -> None:
        """Record at once, in a statement of its own, after what was recorded before."""
        await self.settled()
        await super().record(place, entry)

    async def settled(self) -> None:
        """Wait until everything recorded so far is durable. Raises `LeaseLost`."""
        while self._unsettled:
            write = self._unsettled[0]
            try:
                await self._landed(write)
            finally:
                # Or else we were interrupted, and the next one waits on.
                if write.answered.is_set():
                    self._unsettled.remove(write)

    async def patiently(self, statement: LiteralString, **values: Any) -> list[Row]:
        """The end of a run joins a flush; any other statement comes after what was recorded."""
        self._is_new = False
        if statement is not FINISH:
            await self.settled()
            return await super().patiently(statement, **values)
        end = End(values["target"], values["result"], values["failure"])
        write = self.group.add(self.lease, end=end)
        row = await self._landed(write)
        await self.settled()  # an earlier flush may have refused a record
        return [] if row is None else [row]

    async def _landed(self, write: Write) -> Row | None:
        """The row that was written; None if only an end was asked for and the fence refused it."""
        row = await write.answer()
        written = 0 if row is None else row["records"]
        if written < len(write.entries):
            for place, entry in write.entries:
                if not await self._recorded_by_us(place, entry):
                    raise LeaseLost(self.lease, "its record was refused")
        return row

    async def _recorded_by_us(self, place: Place, entry: Entry) -> bool:
        rows = await super().patiently(RECORDED, **self.values(place))
        return self.is_mine(rows, entry.fingerprint)


@dataclass
class FastEffects(Effects):
    """Carries steps out as ever; only how their outcomes are recorded differs."""

    journal: FastJournal

    async def _record(self, place: Place, step: Step[Any], entry: Entry) -> None:
        effect = self.app.effects.get(type(step))
        limited = effect is None or effect.pool is not None or effect.worst_case is not None
        if limited or entry.statements:
            await self.journal.record(place, entry)
        else:
            self.journal.record_soon(place, entry)


@dataclass
class FastHandler(Handler):
    """The readable driver, with one barrier: no step begins before the last ones are durable.

    A batch of one step needs no group of tasks.
    """

    journal: FastJournal

    async def _batch(self, n: int, steps: Sequence[Step[Any]]) -> list[Succeeded | Failed] | Parked:
        await self.journal.settled()
        if len(steps) > 1 or is_wait(steps[0]):
            return await super()._batch(n, steps)
        done = await self._once(Place(n, 0), steps[0])
        return Parked(done.seconds, None) if isinstance(done, Later) else [done]
