"""The workers of one test: real processes, and what their effects noted outside of the engine."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from pydantic import JsonValue

from two_workers import Engine, Run

T = TypeVar("T")

# Short leases, so that a test takes seconds; the same timing on both engines. The environment
# overrides them.
SETTINGS = {
    "HAND_ROLLED_LEASE_TTL": "2",
    "HAND_ROLLED_HEARTBEAT_INTERVAL": "0.3",
    "HAND_ROLLED_POLL_INTERVAL": "0.1",
    "HAND_ROLLED_CRASH_DETECTION": "false",
    "TEMPORAL_VERSION_ARM": "tuned",
    "TEMPORAL_VERSION_HEARTBEAT_TIMEOUT": "2",
    "TEMPORAL_VERSION_HEARTBEAT_THROTTLE": "0.3",
}
DEADLINE = 90.0
"""Seconds after which a condition that does not come true fails its test."""


@dataclass
class Cluster:
    """Start workers and runs, wait for what they do. `app` is a `module:NAME`."""

    engine: Engine
    env: Mapping[str, str]
    directory: Path
    app: str = "comparison.chaos.app:APP"
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start_worker(self) -> subprocess.Popen[bytes]:
        """A worker process in a session of its own."""
        command = ["worker", "--engine", self.engine.name, "--app", self.app]
        with (self.directory / f"worker-{len(self.workers)}.log").open("wb") as log:
            worker = subprocess.Popen(
                [sys.executable, "-m", "two_workers.cli", *command],
                env={
                    **self.env,
                    "CHAOS_DIR": str(self.directory),
                    "PYTHONPATH": os.pathsep.join(sys.path),  # a worker finds what pytest finds
                },
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.workers.append(worker)
        return worker

    async def start_run(self, kind: str, payload: JsonValue) -> str:
        """Start a run under a fresh id."""
        run = Run(run_id=f"chaos-{uuid.uuid4().hex[:8]}", kind=kind, payload=payload)
        await self.engine.start(run)
        return run.run_id

    def calls(self, **match: Any) -> list[dict[str, Any]]:
        """What the effects noted, in order, as far as it has these values."""
        path = self.directory / "calls.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        calls = [json.loads(line) for line in lines]
        return [call for call in calls if match.items() <= call.items()]

    def open(self, *places: str) -> None:
        """Let the steps at these places end."""
        for place in places:
            (self.directory / f"open-{place}").touch()

    async def result(self, run_id: str) -> JsonValue:
        """A run's result. Fails the test if the newest worker exits instead of bringing it."""
        waiting = asyncio.ensure_future(self.engine.result(run_id, timeout=600))
        try:
            while not waiting.done():
                self.expect_alive()
                await asyncio.wait([waiting], timeout=0.1)
        finally:
            waiting.cancel()
        return waiting.result()

    def expect_alive(self) -> None:
        """Fail the test if the newest worker has exited: nobody killed that one."""
        if (code := self.workers[-1].poll()) is not None:
            pytest.fail(f"a worker exited by itself with {code}; logs:\n{self.logs()}")

    def logs(self) -> str:
        """The end of what the workers said."""
        return "".join(p.read_text() for p in sorted(self.directory.glob("*.log")))[-4000:]

    async def until(self, true: Callable[[], T], *, what: str) -> T:
        """Wait for a condition; the deadline only bounds a failing test."""
        try:
            async with asyncio.timeout(DEADLINE):
                while not (found := true()):
                    await asyncio.sleep(0.02)
        except TimeoutError:
            pytest.fail(f"not {what}; calls: {self.calls()}; logs:\n{self.logs()}")
        return found

    def close(self) -> None:
        """Kill what is left, by pid."""
        for worker in self.workers:
            if worker.poll() is None:
                worker.send_signal(signal.SIGCONT)
                worker.kill()
            worker.wait()
