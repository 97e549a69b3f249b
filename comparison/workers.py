"""The workers of one campaign: a fixed number of slots, each refilled after its worker's death."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from comparison.cluster import Cluster, Process
from comparison.engines import by_way_of, server_address, worker_command
from comparison.proxy import Proxy


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

    async def fill(self) -> None:
        """Start as many workers as are missing, and wait until they are ready."""
        running = sum(process.is_running for process in self._by_id.values())
        await asyncio.gather(*(self._start() for _ in range(self._count - running)))

    async def _start(self) -> None:
        self._started += 1
        name, env, proxy = f"worker-{self._started:02d}", self._env, None
        if self._proxied:
            address = server_address(self._engine, env)
            proxy = await self._stack.enter_async_context(Proxy.before(*address))
            env = by_way_of(self._engine, env, proxy.port)
        command = worker_command(self._engine, self._app)
        process = await self._cluster.start(name, command, env, ready=r"^worker (\S+) ready")
        worker_id = process.ready.result()
        self._by_id[worker_id] = process
        if proxy is not None:
            self._proxies[worker_id] = proxy

    def heal(self) -> None:
        """Nobody stays paused or cut off."""
        for process in self._by_id.values():
            process.resume()
        for proxy in self._proxies.values():
            proxy.heal()
