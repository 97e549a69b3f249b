"""Carry out scenarios on servers of our own, which are stopped afterwards.

Never on a server that the environment names: a scenario sets limits for everybody and kills what
it started. Run as a program it does one scenario on one engine and writes the recording; that is
how a scratch copy of the store is tried (`break_one.py`).
"""

from __future__ import annotations

import asyncio
import os
import platform
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg

from comparison.cluster import Cluster
from comparison.mapping.recording import Recording, Side
from comparison.mapping.scenarios import COMMON, Scenario, find_scenario
from comparison.mapping.scenarios.bench import Bench, NotSeen
from comparison.mapping.scenarios.watch_history import HistoryObserver
from comparison.mapping.scenarios.watch_table import TableObserver
from two_workers import engine_plugin
from two_workers.engines import server_for

ENGINES = ("hand_rolled", "temporal")
_OURS = ("DATABASE_URL", "TEMPORAL_", "HAND_ROLLED_", "PG")


class Servers:
    """The servers of a session, each started when it is first needed. Use `Servers.open`."""

    def __init__(self, directory: Path, stack: AsyncExitStack) -> None:
        self._directory = directory
        self._stack = stack
        self._started: dict[tuple[str, str], dict[str, str]] = {}
        self.versions = {
            "python": platform.python_version(),
            "platform": f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs",
            **{name: version(name) for name in ("two-workers", "psycopg", "temporalio")},
        }

    @classmethod
    @asynccontextmanager
    async def open(cls) -> AsyncIterator[Servers]:
        """Servers in a temporary directory, stopped on leaving."""
        async with AsyncExitStack() as stack:
            directory = stack.enter_context(
                tempfile.TemporaryDirectory(prefix="two-workers-", ignore_cleanup_errors=True)
            )
            yield cls(Path(directory), stack)

    async def env(self, engine: str, settings: Mapping[str, str]) -> dict[str, str]:
        """The environment of clients and workers, with a server in it."""
        arm = settings.get("TEMPORAL_VERSION_ARM", "") if engine == "temporal" else ""
        if (engine, arm) not in self._started:
            clean = {k: v for k, v in os.environ.items() if not k.startswith(_OURS)}
            directory = self._directory / f"{engine}-{arm}"
            env = await self._stack.enter_async_context(
                server_for(engine_plugin(engine), {**clean, **settings}, directory=directory)
            )
            self._started[engine, arm] = env
            await self._note_version(engine, env)
        return {**self._started[engine, arm], **settings}

    async def _note_version(self, engine: str, env: dict[str, str]) -> None:
        if engine == "hand_rolled":
            async with await psycopg.AsyncConnection.connect(env["DATABASE_URL"]) as connection:
                self.versions["PostgreSQL"] = str(connection.info.server_version // 10000) + (
                    f".{connection.info.server_version % 10000}"
                )
        else:
            from temporalio.api.workflowservice.v1 import GetSystemInfoRequest
            from temporalio.client import Client

            client = await Client.connect(env["TEMPORAL_ADDRESS"])
            info = await client.workflow_service.get_system_info(GetSystemInfoRequest())
            self.versions["Temporal server"] = f"{info.server_version} (dev server, SQLite)"


async def run_alone(scenario: Scenario) -> Recording:
    """Carry out one scenario on both engines, on servers that live only for it."""
    async with Servers.open() as servers:
        return await run(scenario, servers)


async def run(scenario: Scenario, servers: Servers, engines: Sequence[str] = ENGINES) -> Recording:
    """Carry out a scenario on each engine, one after the other."""
    sides = [await _side(scenario, servers, engine) for engine in engines]
    return Recording(
        scenario=scenario.name,
        title=scenario.title,
        recorded_at=datetime.now(UTC).replace(microsecond=0),
        versions=servers.versions,
        sides=tuple(sides),
    )


async def _side(scenario: Scenario, servers: Servers, name: str) -> Side:
    prefix = "HAND_ROLLED_" if name == "hand_rolled" else "TEMPORAL_VERSION_"
    settings = {k: v for k, v in {**COMMON, **scenario.env}.items() if k.startswith(prefix)}
    env = await servers.env(name, settings)
    orders = await servers.env("hand_rolled", {})
    if name == "temporal":
        env["TEMPORAL_VERSION_TASK_QUEUE"] = f"{scenario.name}-{uuid.uuid4().hex[:6]}"
    plugin = engine_plugin(name)
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="two-workers-")))
        cluster = await stack.enter_async_context(Cluster.open(directory / "logs"))
        engine = await stack.enter_async_context(plugin.connect(plugin.settings(env)))
        observer: Any = (
            TableObserver(env["DATABASE_URL"])
            if name == "hand_rolled"
            else HistoryObserver(engine.client)  # type: ignore[attr-defined] # Temporal's own
        )
        await stack.enter_async_context(observer.looking())
        bench = Bench(
            name=scenario.name,
            engine=engine,
            env=env,
            settings=settings,
            directory=directory,
            cluster=cluster,
            observer=observer,
            orders_url=orders["DATABASE_URL"],
        )
        try:
            await scenario.carry_out(bench)
        except NotSeen as missing:
            bench.check(missing.invariant, "what must happen happens", False, missing)
        return await bench.side()


async def _main(name: str, engine: str, path: Path) -> None:
    _expect_store(os.environ.get("STUDY_STORE"))
    async with Servers.open() as servers:
        recording = await run(find_scenario(name), servers, [engine])
    recording.write(path.parent, name=path.stem)


def _expect_store(folder: str | None) -> None:
    """The store that runs must be the one that was meant: a broken copy, or else the installed."""
    spec = find_spec("hand_rolled")
    assert spec is not None
    if folder is not None and not str(spec.origin).startswith(folder):
        raise RuntimeError(f"expected the store in {folder}, found {spec.origin}")


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
