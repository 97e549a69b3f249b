"""Real worker processes, and what their ledger says."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.hand_rolled.bench import Store
from tests.hand_rolled.process import LEDGER, Script, Work
from two_workers import RunState, RunView

_numbers = itertools.count()


@dataclass
class Fleet:
    """Workers as processes. Every process it started is gone when it closes."""

    store: Store
    directory: Path
    env: dict[str, str]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def ledger(self) -> Path:
        return self.directory / "ledger.jsonl"

    def start(self, **settings: Any) -> str:
        """A new worker. `settings` override, by the name of the setting."""
        worker = f"w{next(_numbers)}"
        env = dict(os.environ, **self.env, **{LEDGER: str(self.ledger)})
        env |= {f"HAND_ROLLED_{name.upper()}": str(value) for name, value in settings.items()}
        with (self.directory / f"{worker}.log").open("wb") as log:
            self.processes[worker] = subprocess.Popen(
                [sys.executable, "-m", "tests.hand_rolled.process", worker],
                env=env, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        return worker

    def send(self, worker: str, what: signal.Signals) -> None:
        self.processes[worker].send_signal(what)

    def kill(self, worker: str) -> None:
        self.processes[worker].kill()
        self.processes[worker].communicate()

    def close(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
            process.communicate()

    def log(self, worker: str) -> str:
        return (self.directory / f"{worker}.log").read_text()

    def events(
        self, run_id: str | None = None, *, event: str | None = None
    ) -> list[dict[str, Any]]:
        lines = self.ledger.read_text().splitlines() if self.ledger.exists() else []
        found = [json.loads(line) for line in lines]
        return [
            it
            for it in found
            if (run_id is None or it["key"].startswith(f"{run_id}/"))
            and (event is None or it["event"] == event)
        ]

    async def run(self, *batches: list[Work] | Work, run_id: str | None = None) -> str:
        script = Script(batches=[it if isinstance(it, list) else [it] for it in batches])
        return await self.store.enqueue(run_id, payload=script.model_dump(mode="json"))

    async def until_event(self, run_id: str, event: str = "begin", *, beside: str = "") -> Any:
        """The first such event by another worker than `beside`."""
        async with asyncio.timeout(90):
            while True:
                for it in self.events(run_id, event=event):
                    if it["worker"] != beside:
                        return it
                await asyncio.sleep(0.01)

    async def until_state(self, run_id: str, *states: RunState) -> RunView:
        async with asyncio.timeout(90):
            while (view := await self.store.engine.get(run_id)).state not in states:
                await asyncio.sleep(0.05)
        return view

    async def until_ready(self, *workers: str) -> None:
        """Until they have registered (and, with crash detection, hold their locks)."""
        registered = "SELECT count(*) = %s FROM workers WHERE worker_id = ANY (%s)"
        await self.store.until(
            lambda: self.store.value(registered, len(workers), list(workers)), deadline=90
        )

    async def until_locked(self, count: int) -> None:
        await self.store.until(
            lambda: self.store.value(
                "SELECT count(*) >= %s FROM pg_locks l JOIN pg_database d ON d.oid = l.database "
                "WHERE l.locktype = 'advisory' AND d.datname = current_database()",
                count,
            ),
            deadline=90,
        )
