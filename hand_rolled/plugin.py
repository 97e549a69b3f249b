"""What the seam finds under the name `hand_rolled`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from hand_rolled import engine, server
from hand_rolled.migrate import migrate
from hand_rolled.settings import Settings, read_settings
from hand_rolled.worker import HandRolledWorker
from two_workers.apps import App


class HandRolledPlugin:
    """Implements `two_workers.EnginePlugin`."""

    name = "hand_rolled"

    def settings(self, env: Mapping[str, str]) -> Settings:
        """`DATABASE_URL` and `HAND_ROLLED_…`. Raises `BadInput`."""
        return read_settings(env)

    async def prepare(self, settings: Settings) -> None:
        """Apply the migrations that are missing. Raises `EngineUnavailable`."""
        await migrate(settings)

    def connect(self, settings: Settings) -> AbstractAsyncContextManager[engine.HandRolledEngine]:
        """A client. Raises `EngineUnavailable` on entering."""
        return engine.connect(settings)

    def worker(
        self, settings: Settings, apps: Sequence[App], *, worker_id: str
    ) -> HandRolledWorker:
        """A worker for these apps."""
        return HandRolledWorker(settings, apps, worker_id=worker_id)

    def is_configured(self, env: Mapping[str, str]) -> bool:
        """True when `DATABASE_URL` names a server."""
        return bool(env.get("DATABASE_URL"))

    def embedded(
        self, directory: Path, env: Mapping[str, str]
    ) -> AbstractAsyncContextManager[Mapping[str, str]]:
        """A PostgreSQL of our own under `directory`; see `server.py`."""
        return server.embedded(directory)


PLUGIN = HandRolledPlugin()
