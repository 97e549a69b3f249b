"""How an arm's engine is reached: its plugin, and the command of its worker.

The story's table is not an installed engine, since nobody should choose it by name.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from urllib.parse import urlsplit

from comparison.grpcwire import message
from comparison.story.adapter.plugin import PLUGIN as STORY
from comparison.wire import Outcome, Request
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


_RUN = re.compile(rb"[0-9a-f]{6}\.[a-z]+-\d+")  # as the harness names its runs
_GROUP = re.compile(rb'"run_id":"([^"]+)"')
_PLACE = re.compile(rb"(?<![\d.])(\d+\.\d+):")


def recorded_by(engine: str, record: Request) -> dict[str, Outcome | None]:
    """What a record is about, by the names of `Ownership.what`, and what became of it.

    A run each where the owner of a run is fenced, several in a group commit: there the rows that
    came back say which were written. On Temporal a step, which its task's token names.
    """
    body = bytes(record.body)
    if engine == "temporal":
        token = message(body)  # which comes first
        run, place = _RUN.search(token), _PLACE.search(token)
        if run is None or place is None:
            return {}
        return {f"{run[0].decode()}/{place[1].decode()}": record.outcome}
    found = _GROUP.findall(body) or [run[0] for run in [_RUN.search(body)] if run is not None]
    runs = dict.fromkeys(found)
    if len(runs) < 2 or record.outcome != "accepted":
        return {run.decode(): record.outcome for run in runs}
    return {run.decode(): "accepted" if run in record.rows else "refused" for run in runs}


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
