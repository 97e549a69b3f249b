"""A bench for one ownership measurement: a database, a client, real workers and their diary."""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from benchmarks.databases import Server
from benchmarks.ownership.app import DIARY, Event, Hold
from comparison.cluster import Cluster, Process
from two_workers import Engine, Run, engine_plugin

T = TypeVar("T")
PATIENCE = 90.0  # seconds after which a measurement is given up


class Entry(BaseModel):
    """A line of the diary. `t` is CLOCK_MONOTONIC in seconds."""

    t: float
    run: str
    worker: str
    pid: int
    fence: int
    event: Event


@dataclass
class Bench:
    """Workers of the hand-rolled engine over one fresh database."""

    engine: Engine
    cluster: Cluster
    env: dict[str, str]
    diary: Path
    _entries: list[Entry] = field(default_factory=list)
    _read: int = 0

    @classmethod
    @asynccontextmanager
    async def open(
        cls, server: Server, directory: Path, settings: dict[str, str]
    ) -> AsyncIterator[Bench]:
        """A bench whose engine and workers get these settings (`HAND_ROLLED_…`)."""
        plugin = engine_plugin("hand_rolled")
        diary = await asyncio.to_thread(_new_diary, directory)
        async with server.database() as url, Cluster.open(directory / diary.stem) as cluster:
            env = {**settings, "DATABASE_URL": url}
            await plugin.prepare(plugin.settings(env))
            async with plugin.connect(plugin.settings(env)) as engine:
                yield cls(engine, cluster, {**env, DIARY: str(diary)}, diary)

    async def start_worker(self, name: str, **settings: str) -> Process:
        """A worker process that is ready. Its id is `process.ready.result()`."""
        command = [
            *(sys.executable, "-m", "two_workers.cli", "worker"),
            *("--engine", "hand_rolled", "--app", "benchmarks.ownership.app:APP"),
        ]
        return await self.cluster.start(
            name, command, {**self.env, **settings}, ready=r"^worker (\S+) ready"
        )

    async def start_run(self, step: Hold) -> str:
        """A run of this one step."""
        run = Run(run_id=f"hold-{uuid.uuid4().hex[:12]}", kind="hold", payload=step.model_dump())
        return (await self.engine.start(run)).run_id

    def entries(self) -> list[Entry]:
        """The diary so far."""
        with self.diary.open("rb") as file:
            file.seek(self._read)
            news = file.read()
        complete = news[: news.rfind(b"\n") + 1]
        self._read += len(complete)
        self._entries += [Entry(**json.loads(line)) for line in complete.splitlines()]
        return self._entries

    async def begun(self, run: str) -> Entry:
        """Wait until some worker is at the run's step."""
        return await self.first(lambda entry: entry.run == run)

    async def first(self, wanted: Callable[[Entry], bool]) -> Entry:
        """Wait for the first entry like this. Raises `TimeoutError` after 90 seconds."""
        seen = 0
        async with asyncio.timeout(PATIENCE):
            while True:
                entries = self.entries()
                for entry in entries[seen:]:
                    if wanted(entry):
                        return entry
                seen = len(entries)
                await asyncio.sleep(0.005)


def _new_diary(directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    diary = directory / f"diary-{uuid.uuid4().hex[:8]}.jsonl"
    diary.touch()
    return diary
