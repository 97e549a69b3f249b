"""The scene of one measurement: a fresh place, a client, real worker processes and their diary."""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import ADDRESS
from benchmarks.ownership.diary import DIARY, Diary, Entry
from benchmarks.ownership.holding import Hold
from benchmarks.ownership.worker import SETTINGS
from benchmarks.peers.holders import WORKER, Client, Settings, load_holder
from benchmarks.rounds import Arena
from comparison.cluster import Cluster, Process


@dataclass(frozen=True)
class Contender:
    """Who is measured: name in the table, holder, settings, these in words, and the place."""

    name: str
    holder: str
    settings: Settings
    words: str
    arena: Arena


@dataclass(frozen=True)
class Scene:
    """Workers of one contender over one fresh database, or one server."""

    client: Client
    diary: Diary
    cluster: Cluster
    _holder: str
    _env: dict[str, str]

    @classmethod
    @asynccontextmanager
    async def open(cls, contender: Contender, directory: Path) -> AsyncIterator[Scene]:
        """A scene. Its workers are killed on leaving, whatever they are at."""
        holder = load_holder(contender.holder)
        place = directory / f"{contender.holder}-{uuid.uuid4().hex[:8]}"
        async with contender.arena() as address, Cluster.open(place) as cluster:
            diary = Diary(place / "diary.jsonl")
            await asyncio.to_thread(diary.path.touch)
            env = {
                ADDRESS: address,
                SETTINGS: json.dumps(dict(contender.settings)),
                DIARY: str(diary.path),
            }
            async with holder.connect(address, contender.settings) as client:
                yield cls(client, diary, cluster, contender.holder, env)
                await asyncio.gather(*(process.killed() for process in cluster.running))

    async def start_worker(self, name: str, *, concurrency: int) -> Process:
        """A worker process that begins to look for work. A name may be used again after a kill."""
        command = (sys.executable, "-m", "benchmarks.ownership.worker")
        return await self.cluster.start(
            name,
            [*command, self._holder, str(concurrency)],
            {**self._env, WORKER: name},
            ready=r"^worker (\d+) starts",
        )

    async def occupied(self, processes: Sequence[Process], step: Hold) -> list[Entry]:
        """Start runs of this step until each process has begun one; those first ones."""
        first: dict[int, Entry] = {}
        while waiting := [process for process in processes if process.pid not in first]:
            runs = [await self.client.start(step) for _ in waiting]
            for run in runs:
                begun = await self.diary.begun(run)
                first.setdefault(begun.pid, begun)
        return [first[process.pid] for process in processes]
