"""A real Temporal client and server: the proxy knows which method is called and when it ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from temporalio.client import Client

from comparison.arms import find_arm
from comparison.breakers.servers import arm_server
from comparison.engines import server_address
from comparison.proxy import Proxy

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    async with arm_server(find_arm("temporal")) as (env, server):
        assert server is not None, "these tests start a server of their own"
        async with Proxy.before(*server_address("temporal", env)) as proxy:
            yield proxy


@pytest.fixture
async def client(proxy: Proxy) -> Client:
    client = await Client.connect(f"127.0.0.1:{proxy.port}")
    for _ in range(3):  # the names of headers are sent once, then known by number
        await client.count_workflows()
    return client


async def test_a_call_is_known_by_its_method(proxy: Proxy, client: Client) -> None:
    trap = proxy.trap(b"/CountWorkflowExecutions", "asked")
    await client.service_client.check_health()
    assert not trap.sprung.is_set(), "another method"
    asked = asyncio.create_task(client.count_workflows())
    await asyncio.wait_for(trap.sprung.wait(), 30)
    assert not asked.done()
    trap.let_go()
    assert (await asked).count == 0


async def test_only_a_success_is_an_answer(proxy: Proxy, client: Client) -> None:
    trap = proxy.trap(b"/DescribeWorkflowExecution", "answered")
    with pytest.raises(Exception, match="not found"):
        await client.get_workflow_handle("nobody").describe()
    assert not trap.sprung.is_set()
    trap = proxy.trap(b"/CountWorkflowExecutions", "answered")
    asked = asyncio.create_task(client.count_workflows())
    await asyncio.wait_for(trap.sprung.wait(), 30)
    assert not asked.done()
    trap.let_go()
    assert (await asked).count == 0
