"""One dev server for the session; a task queue, a ledger and fresh ids for each test."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from temporal_version.client import connect_client
from temporal_version.engine import TemporalEngine
from temporal_version.plugin import PLUGIN
from temporal_version.server import SERVER_KNOBS, DevServer, find_executable
from temporal_version.settings import Settings
from tests.temporal_version.app import APP
from two_workers import App, Run, RunState, RunView
from two_workers.engines import new_worker_id

ROOT = Path(__file__).parents[2]
QUICK = {
    "TEMPORAL_VERSION_ARM": "tuned",
    "TEMPORAL_VERSION_HEARTBEAT_TIMEOUT": "3",
    "TEMPORAL_VERSION_HEARTBEAT_THROTTLE": "0.3",
}


def new_server(directory: Path, **knobs: str) -> DevServer:
    return DevServer(directory, executable=find_executable(os.environ), knobs=knobs)


@pytest.fixture(scope="session")
async def dev_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DevServer]:
    server = new_server(tmp_path_factory.mktemp("temporal"))
    await server.start()
    yield server
    await server.stop()


@pytest.fixture(scope="session")
async def server_with_knobs(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DevServer]:
    """The arm `server` with limits so low that a short test meets them."""
    low = {
        "limit.historyCount.suggestContinueAsNew": "60",
        "limit.numPendingActivities.error": "20",
    }
    server = new_server(tmp_path_factory.mktemp("knobs"), **{**SERVER_KNOBS["server"], **low})
    await server.start()
    yield server
    await server.stop()


@dataclass
class Ledger:
    """What effects wrote down, in this process or another."""

    path: Path

    def entries(self, event: str | None = None) -> list[dict[str, Any]]:
        if not self.path.exists():
            return []
        found = [json.loads(line) for line in self.path.read_text().splitlines()]
        return [entry for entry in found if event in (None, entry["event"])]

    async def until(
        self, event: str, count: int, *, deadline: float = 60.0
    ) -> list[dict[str, Any]]:
        await until(lambda: len(self.entries(event)) >= count, deadline=deadline)
        return self.entries(event)

    def release(self) -> None:
        self.path.with_name("release").touch()


async def until(true: Callable[[], bool], *, deadline: float = 60.0) -> None:
    """Wait for a condition. The deadline only bounds a failing test."""
    async with asyncio.timeout(deadline):
        while not true():
            await asyncio.sleep(0.02)


@dataclass
class Bench:
    """The engine under test, and ways to start and break its workers."""

    env: dict[str, str]
    engine: TemporalEngine
    ledger: Ledger
    processes: list[asyncio.subprocess.Process] = field(default_factory=list)

    def settings(self, **env: str) -> Settings:
        more = {f"TEMPORAL_VERSION_{key.upper()}": value for key, value in env.items()}
        return PLUGIN.settings({**self.env, **more})

    async def start(self, *steps: str, run: Run | None = None, **payload: Any) -> str:
        run = run or self.run(*steps, **payload)
        await self.engine.start(run)
        return run.run_id

    def run(self, *steps: str, **payload: Any) -> Run:
        payload = {"ledger": str(self.ledger.path), "steps": list(steps), **payload}
        return Run(run_id=f"run-{uuid.uuid4().hex[:12]}", kind="work", payload=payload)

    def run_again(self, run_id: str, **payload: Any) -> Run:
        """The same run, as a client that did not hear of its start would send it again."""
        return self.run(**payload).model_copy(update={"run_id": run_id})

    @asynccontextmanager
    async def worker(self, app: App = APP, **env: str) -> AsyncIterator[str]:
        """A worker in this process; stopped in the orderly way on leaving."""
        worker_id, stop = new_worker_id(), asyncio.Event()
        worker = PLUGIN.worker(self.settings(**env), [app], worker_id=worker_id)
        task = asyncio.create_task(worker.run(stop))
        try:
            yield worker_id
        finally:
            self.ledger.release()
            stop.set()
            async with asyncio.timeout(60):
                await task

    async def process(self, app: str = "APP", **env: str) -> asyncio.subprocess.Process:
        """A worker in a process of its own, as a supervisor would start it."""
        more = {f"TEMPORAL_VERSION_{key.upper()}": value for key, value in env.items()}
        command = ["worker", "--engine", "temporal", "--app", f"tests.temporal_version.app:{app}"]
        log = self.ledger.path.with_name("workers.log").open("ab")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "two_workers.cli", *command),
            cwd=ROOT,
            env={**os.environ, **self.env, **more},
            stdout=log,
            stderr=log,
        )
        log.close()
        self.processes.append(process)
        return process

    async def process_at(self, address: str) -> asyncio.subprocess.Process:
        """Such a process that reaches the server at another address."""
        direct = self.env["TEMPORAL_ADDRESS"]
        self.env["TEMPORAL_ADDRESS"] = address
        try:
            return await self.process()
        finally:
            self.env["TEMPORAL_ADDRESS"] = direct

    async def checkpointed(self, run_id: str) -> None:
        """Wait until a heartbeat of the run's step has reached the server."""
        handle = self.engine.client.get_workflow_handle(run_id)
        async with asyncio.timeout(60):
            while True:
                pending = (await handle.describe()).raw_description.pending_activities
                if pending and pending[0].heartbeat_details.payloads:
                    return
                await asyncio.sleep(0.05)

    async def listed(self, run_id: str) -> None:
        """Wait until visibility knows the run."""
        async with asyncio.timeout(60):
            while run_id not in {view.run_id for view in await self.engine.list_runs(kind="work")}:
                await asyncio.sleep(0.05)

    async def kill(self, *processes: asyncio.subprocess.Process) -> None:
        for process in processes or self.processes:
            if process.returncode is None:
                process.send_signal(signal.SIGKILL)
                await process.wait()

    async def until_state(self, run_id: str, *states: RunState) -> RunView:
        async with asyncio.timeout(60):
            while (view := await self.engine.get(run_id)).state not in states:
                await asyncio.sleep(0.05)
        return view

    async def events(self, run_id: str, name: str) -> list[Any]:
        """All events of a run's history of one type, e.g. `ACTIVITY_TASK_SCHEDULED`."""
        from temporalio.api.enums.v1 import EventType

        handle = self.engine.client.get_workflow_handle(run_id)
        wanted = EventType.Value(f"EVENT_TYPE_{name}")
        return [e async for e in handle.fetch_history_events() if e.event_type == wanted]


@asynccontextmanager
async def bench_at(address: str, directory: Path, **env: str) -> AsyncIterator[Bench]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("TEMPORAL_")}
    env = {
        **clean,
        **QUICK,
        "TEMPORAL_ADDRESS": address,
        "TEMPORAL_VERSION_TASK_QUEUE": f"test-{uuid.uuid4().hex[:8]}",
        **{f"TEMPORAL_VERSION_{key.upper()}": value for key, value in env.items()},
    }
    settings = PLUGIN.settings(env)
    engine = TemporalEngine(await connect_client(settings), settings)
    bench = Bench(env, engine, Ledger(directory / "ledger.jsonl"))
    try:
        yield bench
    finally:
        await bench.kill()


@pytest.fixture
async def bench(dev_server: DevServer, tmp_path: Path) -> AsyncIterator[Bench]:
    async with bench_at(dev_server.address, tmp_path) as bench:
        yield bench


@pytest.fixture
async def knobs_bench(server_with_knobs: DevServer, tmp_path: Path) -> AsyncIterator[Bench]:
    async with bench_at(server_with_knobs.address, tmp_path, arm="server") as bench:
        yield bench
