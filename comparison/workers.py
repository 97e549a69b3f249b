"""The workers of one campaign: a fixed number of slots, each refilled after its worker's death."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from types import MappingProxyType

from comparison.cluster import Cluster, Process
from comparison.engines import (
    REQUESTS,
    by_way_of,
    recorded_by,
    server_address,
    worker_command,
)
from comparison.evidence import LateRecord
from comparison.proxy import Proxy
from two_workers import BadInput


class NoWorkers(BadInput):
    """There is nobody left to do the work."""


class Workers:
    """`count` worker processes of one engine, kept up by the harness. Use `Workers.of`.

    With `proxied`, each worker reaches its server through a proxy of its own, so that the network
    of one worker can be silenced; the world stays reachable.
    """

    def __init__(
        self,
        cluster: Cluster,
        engine: str,
        env: Mapping[str, str],
        count: int,
        app: str,
        stack: AsyncExitStack,
        *,
        proxied: bool,
    ) -> None:
        self._cluster = cluster
        self._engine = engine
        self._env = env
        self._app = app
        self._count = count
        self._stack = stack
        self._proxied = proxied
        self._started = 0
        self._by_id: dict[str, Process] = {}
        self._proxies: dict[str, Proxy] = {}

    @classmethod
    @asynccontextmanager
    async def of(
        cls,
        cluster: Cluster,
        engine: str,
        env: Mapping[str, str],
        *,
        count: int,
        app: str,
        proxied: bool,
    ) -> AsyncIterator[Workers]:
        """Workers that are asked to stop on leaving the block, while their server can be reached.

        If the block fails they are not asked; the cluster ends them.
        """
        async with AsyncExitStack() as stack:
            workers = cls(cluster, engine, env, count, app, stack, proxied=proxied)
            yield workers
            await cluster.stop(workers._by_id.values())

    def named(self, worker_id: str) -> Process | None:
        """The process behind a worker's id, or None if it is not one of ours."""
        return self._by_id.get(worker_id)

    def proxy_of(self, worker_id: str) -> Proxy | None:
        """The proxy between a worker and its server, or None when there is none."""
        return self._proxies.get(worker_id)

    def withheld(self, worker_id: str) -> int:
        """Bytes of a worker that its proxy has kept from the server since a silence began."""
        proxy = self.proxy_of(worker_id)
        return 0 if proxy is None else proxy.withheld["to_server"]

    def late_records(self) -> tuple[LateRecord, ...] | None:
        """The records that silences withheld and then let through; None without proxies."""
        if not self._proxied:
            return None
        marker = REQUESTS[self._engine]["record"]
        return tuple(
            LateRecord(worker=worker, what=what, passed_ns=late.passed_ns, outcome=outcome)
            for worker, proxy in self._proxies.items()
            for late in proxy.late
            if late.passed_ns is not None and marker in late.request.name
            for what, outcome in recorded_by(self._engine, late.request).items()
        )

    @property
    def running(self) -> dict[str, Process]:
        """The workers that have not ended, by id."""
        return {worker: process for worker, process in self._by_id.items() if process.is_running}

    async def fill(self) -> None:
        """Start as many workers as are missing, and wait until they are ready."""
        missing = self._count - len(self.running)
        await asyncio.gather(*(self._start() for _ in range(missing)))

    async def join(self, env: Mapping[str, str]) -> str:
        """One worker more than there should be, with `env` besides; returns its id."""
        return await self._start(env)

    async def leave(self, worker_id: str) -> None:
        """Ask a worker that has joined to go again, and wait until it has; safe to repeat."""
        process = self.named(worker_id)
        if process is not None:
            await self._cluster.stop([process])

    async def _start(self, extra: Mapping[str, str] = MappingProxyType({})) -> str:
        self._started += 1
        name, env, proxy = f"worker-{self._started:02d}", {**self._env, **extra}, None
        if self._proxied:
            address = server_address(self._engine, env)
            proxy = await self._stack.enter_async_context(Proxy.before(*address))
            env = by_way_of(self._engine, env, proxy.port)
        command = worker_command(self._engine, self._app)
        try:
            process = await self._cluster.start(name, command, env, ready=r"^worker (\S+) ready")
        except RuntimeError as error:  # with the end of its log
            raise NoWorkers(f"no worker became ready: {error}") from error
        worker_id = process.ready.result()
        self._by_id[worker_id] = process
        if proxy is not None:
            self._proxies[worker_id] = proxy
        return worker_id

    def heal(self) -> None:
        """Nobody stays paused or cut off."""
        for process in self._by_id.values():
            process.resume()
        for proxy in self._proxies.values():
            proxy.heal()
