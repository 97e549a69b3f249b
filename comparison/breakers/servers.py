"""Under all workers at once: their sessions end, or the server itself crashes and comes back."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from comparison.arms import Arm
from comparison.breakers.base import Server
from comparison.engines import plugin_of
from comparison.meters import Meter
from hand_rolled.server import EmbeddedPostgres
from hand_rolled.server import embedded as embedded_postgres
from temporal_version.server import SERVER_KNOBS, DevServer, find_executable
from temporal_version.settings import read as read_temporal

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
    ended: int = 0

    async def strike(self) -> None:
        async with await psycopg.AsyncConnection.connect(self.database_url) as connection:
            cursor = await connection.execute(_END_SESSIONS)
            [[self.ended]] = await cursor.fetchall()

    async def problem(self) -> str | None:
        return None if self.ended else "no worker had a session"

    async def heal(self) -> None:
        """Nothing to undo: the workers connect again."""


@dataclass
class Restarted:
    """The server crashes and is away for `away` seconds. Confirmed by its start.

    What it counts begins at zero then; its meter is told, so that nothing is lost.
    """

    server: Server
    meter: Meter
    away: float = 1.0
    is_back: bool = True

    async def strike(self) -> None:
        await self.meter.mark()
        self.is_back = False
        await self.server.crash()

    async def problem(self) -> str | None:
        await asyncio.sleep(self.away)  # the length of the fault, not a wait for a condition
        await self.heal()
        return None

    async def heal(self) -> None:
        if not self.is_back:
            await self.server.start()
            self.is_back = True
            await self.meter.mark()


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


@asynccontextmanager
async def arm_server(arm: Arm) -> AsyncIterator[tuple[dict[str, str], Server | None]]:
    """The environment with the arm's prepared server in it, and the server if it is ours to crash.

    Ours is embedded, and gone with its data afterwards. Raises `EngineUnavailable`.
    """
    plugin, base = plugin_of(arm.engine), {**os.environ, **arm.env}
    if plugin.is_configured(base):
        await plugin.prepare(plugin.settings(base))
        yield base, None
        return
    with tempfile.TemporaryDirectory(prefix="two-workers-", ignore_cleanup_errors=True) as data:
        start = _temporal if arm.engine == "temporal" else _postgres
        async with start(base, Path(data)) as (env, server):
            await plugin.prepare(plugin.settings(env))
            yield env, server


@asynccontextmanager
async def _postgres(
    base: dict[str, str], directory: Path
) -> AsyncIterator[tuple[dict[str, str], Server]]:
    async with embedded_postgres(directory) as found:
        yield {**base, **found}, Postgres(EmbeddedPostgres(directory / "postgres"))


@asynccontextmanager
async def _temporal(
    base: dict[str, str], directory: Path
) -> AsyncIterator[tuple[dict[str, str], Server]]:
    knobs = SERVER_KNOBS[read_temporal(base).arm]
    server = DevServer(directory, executable=find_executable(base), knobs=knobs)
    await server.start()
    try:
        yield {**base, **server.environment()}, Temporal(server)
    finally:
        await server.stop()
