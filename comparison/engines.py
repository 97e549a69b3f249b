"""How an arm's engine is reached: its plugin, and the command of its worker.

The story's table is not an installed engine, since nobody should choose it by name.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from urllib.parse import urlsplit

from comparison.story.adapter.plugin import PLUGIN as STORY
from two_workers import EnginePlugin, engine_plugin

REQUESTS = {
    "temporal": {
        "record": b"/RespondActivityTaskCompleted",
        "heartbeat": b"/RecordActivityTaskHeartbeat",
    },
    "hand_rolled": {"record": b"INSERT INTO journal", "heartbeat": b"renewed AS ("},
    STORY.name: {"record": b"INSERT INTO journal", "heartbeat": b"    heartbeat_at = now()"},
}
"""What a worker's record of a step, and its heartbeat, contain on their way to the server."""


def plugin_of(engine: str) -> EnginePlugin:
    """The plugin of an arm's engine. Raises `BadInput` if there is none."""
    return STORY if engine == STORY.name else engine_plugin(engine)


def worker_command(engine: str, app: str) -> list[str]:
    """How a worker process is started, with the interpreter of this one."""
    if engine == STORY.name:
        return [sys.executable, "-m", "comparison.story", "worker", "--app", app]
    command = [sys.executable, "-m", "two_workers.cli", "worker"]
    return [*command, "--engine", engine, "--app", app]


def server_address(engine: str, env: Mapping[str, str]) -> tuple[str, int]:
    """Host and port of the server that `env` names: where a proxy passes things on to."""
    if engine == "temporal":
        host, _, port = env["TEMPORAL_ADDRESS"].rpartition(":")
        return host, int(port)
    url = urlsplit(env["DATABASE_URL"])
    return url.hostname or "127.0.0.1", url.port or 5432


def by_way_of(engine: str, env: Mapping[str, str], port: int) -> dict[str, str]:
    """`env` for a worker that reaches its server only through `port` of this machine."""
    if engine == "temporal":
        return {**env, "TEMPORAL_ADDRESS": f"127.0.0.1:{port}"}
    url = urlsplit(env["DATABASE_URL"])
    login, at, _ = url.netloc.rpartition("@")
    return {**env, "DATABASE_URL": url._replace(netloc=f"{login}{at}127.0.0.1:{port}").geturl()}
