"""A store under test: real PostgreSQL, workers that are only names, time that can be turned.

Nothing here sleeps to let a lease end: the lease's end is moved into the past instead.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg.rows import dict_row

from hand_rolled.claim import Claimed, Claims
from hand_rolled.database import Database, Row
from hand_rolled.engine import HandRolledEngine
from hand_rolled.entries import Entry, Place, as_json
from hand_rolled.heartbeat import HEARTBEAT
from hand_rolled.journal import Journal
from hand_rolled.lease import Lease, clock
from hand_rolled.lifecycle import Ending
from hand_rolled.limits import Slots
from hand_rolled.reclaim import Orphan, Reclaims
from hand_rolled.worker import REGISTER
from two_workers import Run

KIND = "test"
_numbers = itertools.count()


def entry(value: Any = "done", *, fingerprint: str = "ask:1", **more: Any) -> Entry:
    outcome = as_json({"outcome": "succeeded", "value": value})
    return Entry(
        kind="ask", fingerprint=fingerprint, outcome=outcome, succeeded=True, attempt=1, **more
    )


@dataclass
class Hand:
    """A worker as the store knows it: an owner id and what it holds."""

    store: Store
    owner: str
    kinds: list[str] = field(default_factory=lambda: [KIND])
    code: str = "1"

    def __post_init__(self) -> None:
        self.claims = self.store.claims(self.owner)
        self.reclaims = Reclaims(self.store.database, self.owner)

    async def claim(self, want: int = 1, *, suspect: bool = False) -> list[Held]:
        found = await self.claims.claim(self.kinds[0], self.code, want=want, suspect=suspect)
        return [self.held(it) for it in found]

    async def claim_one(self) -> Held:
        [held] = await self.claim(1)
        return held

    async def reclaim(
        self, free: int = 10, *, in_contact: bool = True, known: Any = ()
    ) -> list[Orphan]:
        return await self.reclaims.reclaim(
            self.kinds,
            [self.code] * len(self.kinds),
            free=free,
            known=list(known),
            in_contact=in_contact,
        )

    async def take_over(self) -> Held:
        [orphan] = await self.reclaim()
        assert orphan.claimed is not None, orphan
        return self.held(orphan.claimed)

    def held(self, claimed: Claimed) -> Held:
        lease = Lease(claimed.run_id, claimed.generation, self.owner, clock() + 60)
        return Held(claimed, lease, self.store.journal(lease, self.owner))

    async def heartbeat(self, *held: Held) -> list[Row]:
        return await self.store.database.fetch(
            HEARTBEAT,
            worker=self.owner,
            run_ids=[it.run_id for it in held],
            generations=[it.lease.generation for it in held],
            ttl="60s",
        )


@dataclass
class Held:
    """A run that a hand owns, or believes to."""

    claimed: Claimed
    lease: Lease
    journal: Journal

    @property
    def run_id(self) -> str:
        return self.claimed.run_id

    @property
    def ending(self) -> Ending:
        return Ending(self.journal)

    @property
    def slots(self) -> Slots:
        return Slots(self.journal, self.claimed.budget)

    async def record(self, batch: int = 0, position: int = 0, **more: Any) -> None:
        await self.journal.record(Place(batch, position), entry(**more))


@dataclass
class Store:
    """One migrated database and ways to look into it."""

    database: Database
    url: str

    def __post_init__(self) -> None:
        self.engine = HandRolledEngine(self.database)
        self._looking = asyncio.Lock()
        self._eye: psycopg.AsyncConnection[Row] | None = None

    def claims(self, worker: str) -> Claims:
        return Claims(self.database, worker)

    def journal(self, lease: Lease, process: str) -> Journal:
        return Journal(self.database, lease, process)

    async def enqueue(self, run_id: str | None = None, **more: Any) -> str:
        content = {"kind": KIND, "payload": {}} | more
        run = Run(run_id=run_id or f"run-{next(_numbers)}", **content)
        await self.engine.start(run)
        return run.run_id

    async def hand(self, owner: str | None = None, **more: Any) -> Hand:
        hand = Hand(self, owner or f"worker-{next(_numbers)}", **more)
        row = await self.database.fetch_one(
            REGISTER, owner=hand.owner, process=hand.owner, host="here", pid=1,
            kinds=hand.kinds, versions=[hand.code] * len(hand.kinds), concurrency=10,
        )  # fmt: skip
        assert row is not None
        return hand

    async def row(self, run_id: str) -> Row:
        [row] = await self.rows("SELECT * FROM runs WHERE run_id = %s", run_id)
        return row

    async def rows(self, statement: str, *values: Any) -> list[Row]:
        async with self._looking:
            if self._eye is None:
                self._eye = await self.connect()
            found = self._eye.execute(statement, values or None)  # type: ignore[arg-type] # psycopg asks for a literal
            cursor = await found
            return await cursor.fetchall() if cursor.description else []

    async def close(self) -> None:
        if self._eye is not None:
            await self._eye.close()

    async def value(self, statement: str, *values: Any) -> Any:
        [row] = await self.rows(statement, *values)
        [value] = row.values()
        return value

    async def connect(self) -> psycopg.AsyncConnection[Row]:
        return await psycopg.AsyncConnection.connect(
            self.url, autocommit=True, row_factory=dict_row
        )

    async def expire(self, *run_ids: str) -> None:
        """The lease of these runs ended a second ago."""
        await self.rows(
            "UPDATE runs SET lease_expires_at = clock_timestamp() - interval '1 s' "
            "WHERE run_id = ANY (%s) AND status = 'running'",
            list(run_ids),
        )

    async def make_due(self) -> None:
        await self.rows("UPDATE runs SET run_after = clock_timestamp() WHERE run_after IS NOT NULL")

    async def declare_dead(self, hand: Hand) -> None:
        await self.rows(
            "UPDATE workers SET dead_at = clock_timestamp() WHERE worker_id = %s", hand.owner
        )

    @asynccontextmanager
    async def holding(self, statement: str, *values: Any):
        """A transaction that has run `statement` and keeps its locks until the block ends."""
        async with await self.connect() as connection, connection.transaction():
            locks = connection.execute(statement, values or None)  # type: ignore[arg-type] # psycopg asks for a literal
            await locks
            yield connection

    async def until_blocked(self, count: int = 1) -> None:
        """Wait until that many sessions of this database wait for a lock."""
        await self.until(
            lambda: self.value(
                "SELECT count(*) >= %s FROM pg_stat_activity "
                "WHERE datname = current_database() AND wait_event_type = 'Lock'",
                count,
            )
        )

    async def until(self, true: Callable[[], Awaitable[Any]], *, deadline: float = 60) -> None:
        async with asyncio.timeout(deadline):
            while not await true():
                await asyncio.sleep(0.02)
