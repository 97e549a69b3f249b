"""Real worker processes over a real server, and a record of every execution outside of both."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from two_workers import Engine, EnginePlugin, Run, engine_plugin

SETTINGS = {
    "HAND_ROLLED_LEASE_TTL": "2",
    "HAND_ROLLED_HEARTBEAT_INTERVAL": "0.3",
    "HAND_ROLLED_POLL_INTERVAL": "0.1",
    "HAND_ROLLED_CRASH_DETECTION": "false",
    "TEMPORAL_VERSION_ARM": "tuned",
    "TEMPORAL_VERSION_HEARTBEAT_TIMEOUT": "2",
    "TEMPORAL_VERSION_HEARTBEAT_THROTTLE": "0.3",
}


@dataclass
class Cluster:
    """The workers of one test."""

    engine: Engine
    env: dict[str, str]
    name: str
    directory: Path
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start_worker(self) -> subprocess.Popen[bytes]:
        command = ["worker", "--engine", self.name, "--app", "tests.chaos.app:APP"]
        with (self.directory / f"worker-{len(self.workers)}.log").open("wb") as log:
            worker = subprocess.Popen(
                [sys.executable, "-m", "two_workers.cli", *command],
                env={**self.env, "CHAOS_DIR": str(self.directory)},
                cwd=Path(__file__).parents[2],
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.workers.append(worker)
        return worker

    async def start_run(self, *places: str) -> str:
        run = Run(run_id=f"tour-{uuid.uuid4().hex[:8]}", kind="tour", payload=list(places))
        await self.engine.start(run)
        return run.run_id

    def calls(self, **match: Any) -> list[dict[str, Any]]:
        path = self.directory / "calls.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        calls = [json.loads(line) for line in lines]
        return [call for call in calls if match.items() <= call.items()]

    def open(self, *places: str) -> None:
        for place in places:
            (self.directory / f"open-{place}").touch()

    async def until(self, true: Callable[[], Any], *, what: str) -> Any:
        """Wait for a condition; the deadline only bounds a failing test."""
        try:
            async with asyncio.timeout(60):
                while not (found := true()):
                    await asyncio.sleep(0.02)
        except TimeoutError:
            logs = "".join(p.read_text() for p in sorted(self.directory.glob("*.log")))
            pytest.fail(f"not {what}; calls: {self.calls()}; logs:\n{logs[-4000:]}")
        return found

    def close(self) -> None:
        for worker in self.workers:
            if worker.poll() is None:
                worker.send_signal(signal.SIGCONT)
                worker.kill()
            worker.wait()


@pytest.fixture(scope="module", params=["hand_rolled", "temporal"])
async def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[EnginePlugin, dict[str, str]]]:
    plugin = engine_plugin(request.param)
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("DATABASE_", "TEMPORAL_"))}
    env = {**clean, **SETTINGS}
    async with plugin.embedded(tmp_path_factory.mktemp(request.param), env) as found:
        merged = {**env, **found}
        await plugin.prepare(plugin.settings(merged))
        yield plugin, merged


@pytest.fixture
async def cluster(
    server: tuple[EnginePlugin, dict[str, str]], tmp_path: Path
) -> AsyncIterator[Cluster]:
    plugin, env = server
    env = {**env, "TEMPORAL_VERSION_TASK_QUEUE": f"chaos-{uuid.uuid4().hex[:8]}"}
    async with plugin.connect(plugin.settings(env)) as engine:
        running = Cluster(engine, env, plugin.name, tmp_path)
        try:
            yield running
        finally:
            running.close()
