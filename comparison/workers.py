"""The workers of one campaign: a fixed number of slots, each refilled after its worker's death."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from comparison.cluster import Cluster, Process
from comparison.engines import worker_command


class Workers:
    """`count` worker processes of one engine, kept up by the harness."""

    def __init__(
        self, cluster: Cluster, engine: str, env: Mapping[str, str], count: int, app: str
    ) -> None:
        self._cluster = cluster
        self._engine = engine
        self._env = env
        self._app = app
        self._count = count
        self._started = 0
        self._by_id: dict[str, Process] = {}

    def named(self, worker_id: str) -> Process | None:
        """The process behind a worker's id, or None if it is not one of ours."""
        return self._by_id.get(worker_id)

    @property
    def ids(self) -> frozenset[str]:
        """Every worker id that was ever started here."""
        return frozenset(self._by_id)

    async def fill(self) -> None:
        """Start as many workers as are missing, and wait until they are ready."""
        running = sum(process.is_running for process in self._by_id.values())
        await asyncio.gather(*(self._start() for _ in range(self._count - running)))

    async def _start(self) -> None:
        self._started += 1
        command = worker_command(self._engine, self._app)
        process = await self._cluster.start(
            f"worker-{self._started:02d}", command, self._env, ready=r"^worker (\S+) ready"
        )
        self._by_id[process.ready.result()] = process

    def resume_all(self) -> None:
        """Heal: nobody stays paused."""
        for process in self._by_id.values():
            process.resume()
