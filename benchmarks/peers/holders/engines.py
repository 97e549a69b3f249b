"""What this project's two engines have in common as holders: both sit behind the same protocol."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from benchmarks.ownership.app import APP
from benchmarks.ownership.holding import Hold
from benchmarks.peers.holders import Client, Holder, Settings
from two_workers import Engine, Run, RunState, engine_plugin
from two_workers.engines import new_worker_id


class EngineClient(Client):
    """Runs through the engine protocol."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def start(self, step: Hold) -> str:
        run = Run(run_id=f"hold-{uuid.uuid4().hex[:12]}", kind="hold", payload=step.model_dump())
        return (await self._engine.start(run)).run_id

    async def cancel(self, run: str) -> None:
        await self._engine.cancel(run, reason="benchmark")

    async def outcome(self, run: str) -> str | None:
        view = await self._engine.get(run)
        if view.state is not RunState.SUCCEEDED:
            return None
        return str(await self._engine.result(run, timeout=10))


def engine_holder(name: str, address: str, concurrency: str) -> Holder:
    """A holder of the engine `name`; the rest are the names of two of its settings."""
    plugin = engine_plugin(name)

    @asynccontextmanager
    async def connect(server: str, settings: Settings) -> AsyncIterator[Client]:
        chosen = plugin.settings({**settings, address: server})
        await plugin.prepare(chosen)
        async with plugin.connect(chosen) as engine:
            yield EngineClient(engine)

    async def work(server: str, settings: Settings, runs: int) -> None:
        chosen = plugin.settings({**settings, address: server, concurrency: str(runs)})
        await plugin.worker(chosen, [APP], worker_id=new_worker_id()).run(asyncio.Event())

    return Holder(connect, work)
