"""The store's tests write through this journal to be run with group commit."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, LiteralString

from hand_rolled.database import Row
from hand_rolled.entries import Entry, Place
from hand_rolled.fast.commit import GroupCommit
from hand_rolled.fast.journal import FastJournal
from hand_rolled.lease import Lease
from hand_rolled.lifecycle import FINISH
from tests.hand_rolled.bench import Store

LIMITED = """
SELECT EXISTS (
    SELECT run_id, batch, position FROM reservations
    UNION ALL SELECT run_id, batch, position FROM pool_calls
    INTERSECT SELECT %(run_id)s, %(batch)s, %(position)s
) AS limited
"""


@dataclass
class GroupedJournal(FastJournal):
    """A fast journal that flushes by itself, since no worker does it here."""

    async def record(self, place: Place, entry: Entry) -> None:
        if entry.statements or await self._is_limited(place):
            await super().record(place, entry)
            return
        self.record_soon(place, entry)
        await asyncio.gather(self.group.flush(), self.settled())

    async def _is_limited(self, place: Place) -> bool:
        """What `FastEffects` knows from the effect, the tests only show in the tables."""
        row = await self.database.fetch_one(LIMITED, **self.values(place))
        assert row is not None
        return row["limited"]

    async def patiently(self, statement: LiteralString, **values: Any) -> list[Row]:
        if statement is not FINISH:
            return await super().patiently(statement, **values)
        rows, _ = await asyncio.gather(
            super().patiently(statement, **values), self._flush_what_follows()
        )
        return rows

    async def _flush_what_follows(self) -> None:
        await asyncio.sleep(0)  # after the end was added
        await self.group.flush()


def grouped(store: Store, lease: Lease, process: str) -> GroupedJournal:
    group = GroupCommit(store.database, owner=lease.owner, process=process)
    return GroupedJournal(store.database, lease, process, group=group)
