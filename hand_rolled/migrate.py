"""Numbered SQL files, applied in order, once each, by one process at a time."""

from __future__ import annotations

from importlib.resources import files
from typing import LiteralString

import psycopg

from hand_rolled.database import Connection, Database, open_connection
from hand_rolled.settings import Settings
from two_workers.errors import EngineUnavailable

# The oldest whose sessions can look for lost clients and be exempt from idle timeouts. From 17 on,
# transactions are bounded in time too.
OLDEST_SERVER = 140_000

# An arbitrary fixed number: who migrates holds this lock until its transaction ends.
LOCK = "SELECT pg_advisory_xact_lock(7230915, 1)"

TABLE = """
CREATE TABLE IF NOT EXISTS migrations (
    name        text PRIMARY KEY,
    applied_at  timestamptz NOT NULL DEFAULT clock_timestamp()
)
"""


APPLIED = "SELECT name FROM migrations"


def scripts() -> dict[str, LiteralString]:
    """The migrations by name, in order."""
    folder = files("hand_rolled") / "migrations"
    found = sorted(item.name for item in folder.iterdir() if item.name.endswith(".sql"))
    return {name: (folder / name).read_text() for name in found}


async def migrate(settings: Settings) -> list[str]:
    """Apply what is missing, all of it in one transaction or nothing. Returns the names applied."""
    async with (
        await open_connection(settings, application="migrate") as connection,
        connection.transaction(),
    ):
        if connection.info.server_version < OLDEST_SERVER:
            raise EngineUnavailable(
                f"PostgreSQL {OLDEST_SERVER // 10_000} or newer is needed, found "
                f"{connection.info.server_version // 10_000}; upgrade the server"
            )
        return await _apply_missing(connection)


async def require_migrated(database: Database) -> None:
    """Raise `EngineUnavailable` unless every migration that this code knows is applied."""
    try:
        done = {row["name"] for row in await database.fetch(APPLIED)}
    except psycopg.errors.UndefinedTable:
        done = set()
    missing = sorted(scripts().keys() - done)
    if missing:
        raise EngineUnavailable(
            f"this database lacks the migration {missing[0]}; "
            "run `two-workers migrate --engine hand_rolled`"
        )


async def _apply_missing(connection: Connection) -> list[str]:
    await connection.execute(LOCK)
    await connection.execute(TABLE)
    cursor = await connection.execute(APPLIED)
    done = {row["name"] for row in await cursor.fetchall()}
    applied = []
    for name, script in scripts().items():
        if name not in done:
            await connection.execute(script)
            await connection.execute("INSERT INTO migrations (name) VALUES (%s)", (name,))
            applied.append(name)
    return applied
