"""Choose an engine by its name: the one setting that an agent app changes to swap engines."""

from __future__ import annotations

import os
import socket
import tempfile
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, cast

from two_workers.errors import BadInput
from two_workers.protocol import Engine, EnginePlugin

GROUP = "two_workers.engines"


def engine_names() -> list[str]:
    """The installed engines, by name."""
    return sorted(point.name for point in entry_points(group=GROUP))


def engine_plugin(name: str) -> EnginePlugin:
    """The plugin of an engine. Raises `BadInput` if there is none, or its extra is missing."""
    for point in entry_points(group=GROUP):
        if point.name == name:
            try:
                return cast(EnginePlugin, point.load())
            except ModuleNotFoundError as error:
                extra = name.replace("_", "-")
                raise BadInput(
                    f"engine {name!r} needs the package {error.name!r}: "
                    f"pip install 'two-workers[{extra}]'"
                ) from error
    raise BadInput(f"unknown engine {name!r}; installed: {', '.join(engine_names())}")


@asynccontextmanager
async def connect(name: str, settings: Any = None) -> AsyncIterator[Engine]:
    """A client of the engine `name`; `settings` default to the environment's.

    Raises `BadInput` for an unknown engine, `EngineUnavailable` when its server does not answer.
    """
    plugin = engine_plugin(name)
    async with plugin.connect(plugin.settings(os.environ) if settings is None else settings) as it:
        yield it


@asynccontextmanager
async def server_for(
    plugin: EnginePlugin, env: Mapping[str, str], *, directory: Path | None = None
) -> AsyncIterator[dict[str, str]]:
    """The environment with a prepared server in it: the one that `env` names, else an embedded one.

    An embedded server is stopped on leaving; without `directory` its data go too.
    """
    if plugin.is_configured(env):
        await plugin.prepare(plugin.settings(env))
        yield dict(env)
        return
    with tempfile.TemporaryDirectory(prefix="two-workers-", ignore_cleanup_errors=True) as scratch:
        async with plugin.embedded(directory or Path(scratch), env) as found:
            merged = {**env, **found}
            await plugin.prepare(plugin.settings(merged))
            yield merged


def new_worker_id() -> str:
    """Unique for each start: a reused name would let a zombie keep its successor's run alive."""
    return f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
