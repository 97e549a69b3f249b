"""One server of each engine for the whole session; a kind and a queue of its own for each test."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.contract.probe import Probe, contract_app
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


@pytest.fixture(scope="session", params=["hand_rolled", "temporal"])
async def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[EnginePlugin, dict[str, str]]]:
    plugin = engine_plugin(request.param)
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("DATABASE_", "TEMPORAL_"))}
    env = {**clean, **QUICK}
    directory: Path = tmp_path_factory.mktemp(request.param)
    async with plugin.embedded(directory, env) as found:
        merged = {**env, **found}
        await plugin.prepare(plugin.settings(merged))
        yield plugin, merged


@dataclass
class Bench:
    """An engine under test: start runs, start and stop workers, wait for what they do."""

    plugin: EnginePlugin
    env: dict[str, str]
    engine: Engine
    kind: str
    stack: AsyncExitStack
    probe: Probe = field(default_factory=Probe)

    def app(self, agent: Callable[[Any], Any]) -> App:
        return contract_app(self.kind, agent, self.probe)

    def run(self, **payload: Any) -> Run:
        return Run(run_id=f"run-{uuid.uuid4().hex[:12]}", kind=self.kind, payload=payload)

    @asynccontextmanager
    async def worker(self, agent: Callable[[Any], Any]) -> AsyncIterator[str]:
        """A worker in this process; stopped in the orderly way on leaving."""
        worker_id, stop = new_worker_id(), asyncio.Event()
        worker = self.plugin.worker(
            self.plugin.settings(self.env), [self.app(agent)], worker_id=worker_id
        )
        task = asyncio.create_task(worker.run(stop))
        try:
            yield worker_id
        finally:
            self.probe.gate.set()
            stop.set()
            async with asyncio.timeout(60):
                await task

    async def until_state(self, run_id: str, *states: RunState) -> RunView:
        async with asyncio.timeout(60):
            while (view := await self.engine.get(run_id)).state not in states:
                await asyncio.sleep(0.05)
        return view


@pytest.fixture
async def bench(server: tuple[EnginePlugin, dict[str, str]]) -> AsyncIterator[Bench]:
    plugin, env = server
    kind = f"contract-{uuid.uuid4().hex[:8]}"
    env = {**env, "TEMPORAL_VERSION_TASK_QUEUE": kind}
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(plugin.connect(plugin.settings(env)))
        yield Bench(plugin, env, engine, kind, stack)
        await engine.set_limits(Limits())
