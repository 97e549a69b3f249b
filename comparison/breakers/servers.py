"""Under all workers at once: their sessions end, or the server itself crashes and comes back."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

import psycopg

from comparison.plan import FaultKind
from hand_rolled.server import EmbeddedPostgres
from temporal_version.server import DevServer

_END_SESSIONS = """
SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
  AND datname = current_database() AND application_name NOT LIKE '%client'
"""


@dataclass
class SessionsEnded:
    """`pg_terminate_backend` for every session but the harness's own. Confirmed by their number.

    What a failover, an administrator or a pooler's restart does: all workers lose what they hold
    at the server (locks, LISTEN, a transaction) at once, and none of them has died.
    """

    database_url: str
    kind: FaultKind = "sessions"
    ended: int = 0

    async def strike(self) -> None:
        async with await psycopg.AsyncConnection.connect(self.database_url) as connection:
            cursor = await connection.execute(_END_SESSIONS)
            [[self.ended]] = await cursor.fetchall()

    async def problem(self) -> str | None:
        return None if self.ended else "no worker had a session"

    async def heal(self) -> None:
        """Nothing to undo: the workers connect again."""


class Server(Protocol):
    """A server that can crash and come back on the same data and port."""

    async def crash(self) -> None: ...
    async def start(self) -> None: ...


@dataclass(frozen=True)
class Postgres:
    """The embedded PostgreSQL. `crash` leaves no checkpoint: the start recovers from the log."""

    server: EmbeddedPostgres

    async def crash(self) -> None:
        await asyncio.to_thread(self.server.stop, "immediate")

    async def start(self) -> None:
        await asyncio.to_thread(self.server.start)


@dataclass(frozen=True)
class Temporal:
    """The embedded Temporal server: SIGKILL, then the same SQLite file."""

    server: DevServer

    async def crash(self) -> None:
        await self.server.kill()

    async def start(self) -> None:
        await self.server.start()


@dataclass
class Restarted:
    """The server crashes and is away for `away` seconds. Confirmed by its start."""

    server: Server
    away: float = 1.0
    kind: FaultKind = "restart"
    is_back: bool = False

    async def strike(self) -> None:
        await self.server.crash()

    async def problem(self) -> str | None:
        await asyncio.sleep(self.away)  # the length of the fault, not a wait for a condition
        await self.server.start()
        self.is_back = True
        return None

    async def heal(self) -> None:
        if not self.is_back:
            await self.server.start()
