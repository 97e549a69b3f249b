"""What a process of the story arm is told, and how it reaches its tables."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from two_workers import BadInput, EngineUnavailable

Pool = AsyncConnectionPool[AsyncConnection[DictRow]]

PREFIX = "STORY_"
SCHEMA = "story"
_CONNECT = 10.0  # seconds until a database that does not answer counts as away


class StorySettings(BaseModel):
    """Durations in seconds; the lease is the story's."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    database_url: str = Field(min_length=1)
    lease: float = Field(default=60.0, gt=0)
    heartbeat_interval: float = Field(default=20.0, gt=0)
    poll_interval: float = Field(default=1.0, gt=0)
    concurrency: int = Field(default=1, ge=1)


def read_settings(env: Mapping[str, str]) -> StorySettings:
    """Settings from `DATABASE_URL` and `STORY_…`. Raises `BadInput` with one line."""
    if not env.get("DATABASE_URL"):
        raise BadInput("DATABASE_URL is not set: expected postgresql://user@host:5432/database")
    names = [name for name in StorySettings.model_fields if name != "database_url"]
    found = {name: env[PREFIX + name.upper()] for name in names if PREFIX + name.upper() in env}
    try:
        return StorySettings.model_validate({"database_url": env["DATABASE_URL"], **found})
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        name = PREFIX + "_".join(map(str, fault["loc"])).upper()
        raise BadInput(f"{name}: {fault['msg']}; found {fault['input']!r}") from None


@asynccontextmanager
async def open_pool(
    settings: StorySettings, name: str, *, schema: str = SCHEMA
) -> AsyncIterator[Pool]:
    """Connections to the tables in `schema`, under the application name `name`.

    Raises `EngineUnavailable` when the database does not answer.
    """
    pool: Pool = AsyncConnectionPool(
        settings.database_url,
        connection_class=AsyncConnection[DictRow],
        kwargs={
            "autocommit": True,
            "row_factory": dict_row,
            "application_name": name[-63:],  # PostgreSQL keeps no more; the end is the unique part
            "options": f"-c search_path={schema}",
        },
        min_size=1,
        max_size=settings.concurrency + 2,
        open=False,
    )
    try:
        await pool.open(wait=True, timeout=_CONNECT)
    except PoolTimeout as error:
        await pool.close()
        where = conninfo_to_dict(settings.database_url)
        raise EngineUnavailable(
            f"no PostgreSQL answers at {where.get('host')}:{where.get('port', 5432)}: {error}"
        ) from None
    try:
        yield pool
    finally:
        await pool.close()
