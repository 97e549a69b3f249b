"""The proxy before a real Temporal server: gRPC meets the same faults."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from comparison.proxy import Proxy
from temporal_version.server import embedded


@pytest.fixture(scope="module")
async def address(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    async with embedded(tmp_path_factory.mktemp("temporal"), os.environ) as found:
        yield found["TEMPORAL_ADDRESS"]


@pytest.fixture
async def proxy(address: str) -> AsyncIterator[Proxy]:
    host, _, port = address.rpartition(":")
    async with Proxy.before(host, int(port)) as proxy:
        yield proxy


async def start(client: Client, name: str) -> None:
    await client.start_workflow(
        "nobody-runs-it", id=name, task_queue="none", rpc_timeout=timedelta(seconds=60)
    )


async def exists(client: Client, name: str) -> bool:
    try:
        await client.get_workflow_handle(name).describe()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return False
        raise
    return True


async def until(true: object) -> None:
    async with asyncio.timeout(60):
        while not await true():  # type: ignore[operator] # an async function without arguments
            await asyncio.sleep(0.02)


async def test_a_call_during_a_silence_is_carried_out_after_it(proxy: Proxy, address: str) -> None:
    near = await Client.connect(f"127.0.0.1:{proxy.port}")
    witness = await Client.connect(address)
    name = f"wf-{uuid.uuid4().hex}"
    proxy.silence()
    starting = asyncio.create_task(start(near, name))

    async def withheld() -> bool:
        return proxy.withheld["to_server"] > 0

    await until(withheld)
    assert not await exists(witness, name)
    assert not starting.done()
    proxy.heal()
    await starting
    assert await exists(witness, name)


async def test_a_late_call_for_what_is_gone_is_known_to_be_refused(
    proxy: Proxy, address: str
) -> None:
    near = await Client.connect(f"127.0.0.1:{proxy.port}")
    name = f"wf-{uuid.uuid4().hex}"
    await start(near, name)
    await near.get_workflow_handle(name).terminate()
    proxy.silence()
    asking = asyncio.create_task(near.get_workflow_handle(name).signal("too-late"))

    async def withheld() -> bool:
        return any(b"/SignalWorkflowExecution" in late.request.name for late in proxy.late)

    await until(withheld)
    proxy.heal()
    with pytest.raises(RPCError):
        await asking
    outcomes = {late.request.outcome for late in proxy.late if b"/Signal" in late.request.name}
    assert "refused" in outcomes


async def test_silent_to_the_client_only_the_server_accepts_what_nobody_learns_of(
    proxy: Proxy, address: str
) -> None:
    near = await Client.connect(f"127.0.0.1:{proxy.port}")
    witness = await Client.connect(address)
    name = f"wf-{uuid.uuid4().hex}"
    proxy.silence("to_client")
    starting = asyncio.create_task(start(near, name))
    await until(lambda: exists(witness, name))
    assert not starting.done()
    proxy.heal()
    await starting


async def test_a_reset_connection_is_replaced_by_the_sdk(proxy: Proxy, address: str) -> None:
    near = await Client.connect(f"127.0.0.1:{proxy.port}")
    assert proxy.reset() >= 1
    name = f"wf-{uuid.uuid4().hex}"
    await start(near, name)
    assert await exists(await Client.connect(address), name)
