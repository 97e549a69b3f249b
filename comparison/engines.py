"""How an arm's engine is reached: its plugin, and the command of its worker.

The story's table is not an installed engine, since nobody should choose it by name.
"""

from __future__ import annotations

import sys

from comparison.story.plugin import PLUGIN as STORY
from two_workers import EnginePlugin, engine_plugin


def plugin_of(engine: str) -> EnginePlugin:
    """The plugin of an arm's engine. Raises `BadInput` if there is none."""
    return STORY if engine == STORY.name else engine_plugin(engine)


def worker_command(engine: str, app: str) -> list[str]:
    """How a worker process is started, with the interpreter of this one."""
    if engine == STORY.name:
        return [sys.executable, "-m", "comparison.story", "worker", "--app", app]
    command = [sys.executable, "-m", "two_workers.cli", "worker"]
    return [*command, "--engine", engine, "--app", app]
