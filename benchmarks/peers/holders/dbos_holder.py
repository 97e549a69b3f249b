"""DBOS: a step's write is fenced; neither a cancel nor a takeover is told before the step's end.

Nobody notices that an executor died: its workflows go on when a process with the same executor id
starts, when an operator resumes them, or by DBOS Conductor, a service that is not measured here.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from dbos import DBOS, DBOSClient, EnqueueOptions, run_dbos_database_migrations

from benchmarks.ownership.holding import Hold, hold
from benchmarks.peers.holders import WORKER, Client, Holder, Settings

QUEUE = "hold"
WORK = EnqueueOptions(workflow_name="hold", queue_name=QUEUE, app_version="bench")


@DBOS.step(name="hold_step")
async def hold_step(step: dict[str, Any], run: str) -> str:
    """The step."""
    return await hold(Hold(**step), run)


@DBOS.workflow(name="hold")
async def workflow(step: dict[str, Any]) -> str:
    """A workflow of this one step."""
    held: str = await hold_step(step, DBOS.workflow_id)
    return held


class _Client(Client):
    def __init__(self, client: DBOSClient) -> None:
        self._client = client

    async def start(self, step: Hold) -> str:
        handle = await self._client.enqueue_async(WORK, step.model_dump())
        return str(handle.workflow_id)

    async def cancel(self, run: str) -> None:
        await self._client.cancel_workflow_async(run)

    async def outcome(self, run: str) -> str | None:
        handle = await self._client.retrieve_workflow_async(run)
        status = await handle.get_status()
        return str(status.output) if status.status == "SUCCESS" else None

    async def recover(self, run: str) -> None:
        await self._client.resume_workflow_async(run)


@asynccontextmanager
async def connect(url: str, settings: Settings) -> AsyncIterator[Client]:
    """A client of an empty database."""
    await asyncio.to_thread(run_dbos_database_migrations, system_database_url=url)
    client = DBOSClient(system_database_url=url)
    try:
        yield _Client(client)
    finally:
        client.destroy()


async def work(url: str, settings: Settings, concurrency: int) -> None:
    """A worker with an executor id of its own: with the default one, "local", each worker that
    starts takes all others' workflows away from them."""
    DBOS(
        config={
            "name": "bench",
            "executor_id": os.environ[WORKER],
            "system_database_url": url,
            "application_version": "bench",
            "log_level": "ERROR",
        }
    )
    DBOS.launch()
    await DBOS.register_queue_async(
        QUEUE, worker_concurrency=concurrency, polling_interval_sec=0.05
    )
    await asyncio.Event().wait()


HOLDER = Holder(connect, work)
