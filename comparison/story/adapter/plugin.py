"""The story's parts as a plugin. Not an installed engine: nobody should choose it by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import psycopg

from comparison.story import camera, statements
from comparison.story.adapter import engine
from comparison.story.adapter.settings import SCHEMA, StorySettings, read_settings
from comparison.story.adapter.worker import StoryWorker
from hand_rolled.server import embedded
from two_workers import App, Engine, EngineUnavailable, Worker


class StoryPlugin:
    """Makes the parts of the story arm."""

    name = "story"

    def settings(self, env: Mapping[str, str]) -> StorySettings:
        return read_settings(env)

    async def prepare(self, settings: StorySettings) -> None:
        """Create the tables and the harness's camera over them. Safe to repeat and to race."""
        try:
            connection = await psycopg.AsyncConnection.connect(settings.database_url)
        except psycopg.OperationalError as error:
            raise EngineUnavailable(f"PostgreSQL at DATABASE_URL: {error}") from None
        async with connection:
            await connection.execute("SELECT pg_advisory_xact_lock(hashtext('story'))")
            await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
            await connection.execute(f"SET LOCAL search_path = {SCHEMA}")
            await connection.execute(statements.CREATE)
            await connection.execute(camera.CREATE)

    def connect(self, settings: StorySettings) -> AbstractAsyncContextManager[Engine]:
        return engine.connect(settings)

    def worker(self, settings: StorySettings, apps: Sequence[App], *, worker_id: str) -> Worker:
        return StoryWorker(settings, apps, worker_id)

    def is_configured(self, env: Mapping[str, str]) -> bool:
        return bool(env.get("DATABASE_URL"))

    def embedded(
        self, directory: Path, env: Mapping[str, str]
    ) -> AbstractAsyncContextManager[Mapping[str, str]]:
        return embedded(directory)


PLUGIN = StoryPlugin()
