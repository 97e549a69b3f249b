"""What the entry point `two_workers.engines` finds: the Temporal engine's parts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from temporal_version import server
from temporal_version.client import connect_client, reachable
from temporal_version.engine import TemporalEngine
from temporal_version.messages import SEARCH_ATTRIBUTES
from temporal_version.settings import Settings, read
from temporal_version.worker import TemporalWorker
from two_workers.apps import App
from two_workers.errors import EngineUnavailable

USABLE_WITHIN = 90.0
"""Seconds for a cluster to see new search attributes: its caches are renewed about every minute."""


class TemporalPlugin:
    """Implements `two_workers.EnginePlugin`."""

    name = "temporal"

    def settings(self, env: Mapping[str, str]) -> Settings:
        """Settings from environment variables. Raises `BadInput`."""
        return read(env)

    async def prepare(self, settings: Settings) -> None:
        """Create the search attributes, unless they are there. Safe to repeat and to race."""
        client = await connect_client(settings)
        with reachable():
            if await _are_usable(client):
                return
            await _create(client)
            try:
                async with asyncio.timeout(USABLE_WITHIN):
                    while not await _are_usable(client):
                        await asyncio.sleep(0.2)
            except TimeoutError:
                raise EngineUnavailable(
                    f"the search attributes of namespace {client.namespace!r} are created, but the "
                    f"server still did not use them after {USABLE_WITHIN:.0f} s"
                ) from None

    @asynccontextmanager
    async def connect(self, settings: Settings) -> AsyncIterator[TemporalEngine]:
        """A client. Raises `EngineUnavailable` on entering."""
        yield TemporalEngine(await connect_client(settings), settings)

    def worker(self, settings: Settings, apps: Sequence[App], *, worker_id: str) -> TemporalWorker:
        """A worker for these apps; `worker_id` is its identity at the server."""
        return TemporalWorker(settings, apps, worker_id=worker_id)

    def is_configured(self, env: Mapping[str, str]) -> bool:
        """True when an address, a profile or a configuration file is named."""
        return any(
            env.get(k) for k in ("TEMPORAL_ADDRESS", "TEMPORAL_PROFILE", "TEMPORAL_CONFIG_FILE")
        )

    def embedded(
        self, directory: Path, env: Mapping[str, str]
    ) -> AbstractAsyncContextManager[Mapping[str, str]]:
        """The dev server, as long as the context lasts."""
        return server.embedded(directory, env)


async def _are_usable(client: Client) -> bool:
    """Ask visibility itself: its caches lag, and Temporal Cloud offers no other way to ask."""
    query = " OR ".join(f"{key.name} IS NULL" for key in SEARCH_ATTRIBUTES)
    try:
        await client.count_workflows(query)
    except RPCError as error:
        if error.status is RPCStatusCode.INVALID_ARGUMENT:
            return False
        raise
    return True


async def _create(client: Client) -> None:
    types = {k.name: IndexedValueType.ValueType(k.indexed_value_type) for k in SEARCH_ATTRIBUTES}
    request = AddSearchAttributesRequest(namespace=client.namespace, search_attributes=types)
    try:
        await client.operator_service.add_search_attributes(request)
    except RPCError as error:
        if error.status is RPCStatusCode.ALREADY_EXISTS:
            return
        wanted = ", ".join(f"{k.name} ({k.indexed_value_type.name})" for k in SEARCH_ATTRIBUTES)
        raise EngineUnavailable(
            f"cannot create search attributes in namespace {client.namespace!r}: {error.message}; "
            f"create them by hand: {wanted}"
        ) from error


PLUGIN = TemporalPlugin()
