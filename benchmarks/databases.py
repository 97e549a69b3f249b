"""One PostgreSQL for a whole benchmark; a fresh database for each measurement."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hand_rolled.server import embedded

_DURABILITY = ("fsync", "synchronous_commit", "full_page_writes")


@dataclass(frozen=True)
class Server:
    """A PostgreSQL at `url`, whose settings are `settings`."""

    url: str
    settings: dict[str, str]
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    @asynccontextmanager
    async def database(self) -> AsyncIterator[str]:
        """The address of an empty database, dropped on leaving with whoever is still connected."""
        name = f"bench_{next(self._numbers)}"
        await self._execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        parts = conninfo_to_dict(self.url)
        try:
            yield (
                f"postgresql://{parts['user']}:{parts['password']}"
                f"@{parts['host']}:{parts['port']}/{name}"
            )
        finally:
            await self._execute(
                sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            )
            # What this one left dirty is written out now, so that no other pays for it.
            await self._execute(sql.SQL("CHECKPOINT"))

    async def _execute(self, statement: sql.SQL | sql.Composed) -> None:
        async with await psycopg.AsyncConnection.connect(
            make_conninfo(self.url), autocommit=True
        ) as conn:
            await conn.execute(statement)


@asynccontextmanager
async def benchmark_server(directory: Path) -> AsyncIterator[Server]:
    """An embedded PostgreSQL with its default durability, which is verified.

    Raises `RuntimeError` if the server does not write durably: its figures would be worth nothing.
    """
    async with embedded(directory, {}) as env:
        url = env["DATABASE_URL"]
        settings = await _settings(url)
        weak = {name: settings[name] for name in _DURABILITY if settings[name] != "on"}
        if weak:
            raise RuntimeError(f"a benchmark needs a durable server, found {weak}")
        yield Server(url, settings)


async def _settings(url: str) -> dict[str, str]:
    names = [*_DURABILITY, "server_version", "shared_buffers", "max_connections", "wal_sync_method"]
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as conn:
        rows = await conn.execute(
            "SELECT name, setting || coalesce(unit, '') FROM pg_settings WHERE name = ANY (%s)",
            [names],
        )
        return dict(await rows.fetchall())
