"""An engine, its server and workers, for the tests of apps, examples and the service.

Import the fixtures `server` and `bench` in a conftest: every test that uses them runs on each
engine.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from two_workers import App, Engine, EnginePlugin, Limits, Run, RunState, RunView, engine_plugin
from two_workers.engines import new_worker_id

QUICK = {
    "HAND_ROLLED_LEASE_TTL": "6",
    "HAND_ROLLED_HEARTBEAT_INTERVAL": "0.5",
    "HAND_ROLLED_POLL_INTERVAL": "0.1",
    "TEMPORAL_VERSION_ARM": "tuned",
    "TEMPORAL_VERSION_HEARTBEAT_TIMEOUT": "6",
    "TEMPORAL_VERSION_HEARTBEAT_THROTTLE": "0.5",
}


def clean_environment() -> dict[str, str]:
    """This environment without a server of the person who runs the tests."""
    prefixes = ("DATABASE_", "TEMPORAL_", "HAND_ROLLED_", "SERVICE_", "INVESTIGATION_")
    return {k: v for k, v in os.environ.items() if not k.startswith(prefixes)}


@dataclass
class Bench:
    """One engine with its server."""

    plugin: EnginePlugin
    env: dict[str, str]
    engine: Engine

    @asynccontextmanager
    async def worker(self, app: App) -> AsyncIterator[str]:
        """A worker in this process; stopped in the orderly way on leaving."""
        worker_id, stop = new_worker_id(), asyncio.Event()
        worker = self.plugin.worker(self.plugin.settings(self.env), [app], worker_id=worker_id)
        task = asyncio.create_task(worker.run(stop))
        try:
            yield worker_id
        finally:
            stop.set()
            async with asyncio.timeout(60):
                await task

    async def start(self, app: App, payload: object, **options: object) -> str:
        run_id = f"run-{uuid.uuid4().hex[:12]}"
        run = Run.model_validate(
            {"run_id": run_id, "kind": app.kind, "payload": payload, **options}
        )
        await self.engine.start(run)
        return run_id

    async def until_state(self, run_id: str, *states: RunState) -> RunView:
        async with asyncio.timeout(90):
            while (view := await self.engine.get(run_id)).state not in states:
                await asyncio.sleep(0.05)
        return view


@pytest.fixture(scope="session", params=["hand_rolled", "temporal"])
async def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[EnginePlugin, dict[str, str]]]:
    """The server of each engine, for the whole session."""
    plugin = engine_plugin(request.param)
    env = {**clean_environment(), **QUICK}
    directory: Path = tmp_path_factory.mktemp(request.param)
    async with plugin.embedded(directory, env) as found:
        merged = {**env, **found}
        await plugin.prepare(plugin.settings(merged))
        yield plugin, merged


@pytest.fixture
async def bench(server: tuple[EnginePlugin, dict[str, str]]) -> AsyncIterator[Bench]:
    """A client of each engine; limits are lifted again afterwards."""
    plugin, env = server
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(plugin.connect(plugin.settings(env)))
        yield Bench(plugin, env, engine)
        await engine.set_limits(Limits())
