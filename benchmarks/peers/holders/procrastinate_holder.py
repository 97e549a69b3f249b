"""Procrastinate: nobody takes a stalled job over until a task of one's own asks for them.

Such a task is in its documentation (how to retry stalled jobs). `retry_stalled`, a cron expression
with seconds, switches it on; the other settings are those of `App.run_worker_async`, in seconds.
A finish names the job only: a paused worker's late one is accepted. An abort is pushed by NOTIFY.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from procrastinate import App, JobContext, PsycopgConnector

from benchmarks.ownership.holding import Hold, hold
from benchmarks.peers.holders import Client, Holder, Settings


class _Client(Client):
    def __init__(self, app: App) -> None:
        self._app = app

    async def start(self, step: Hold) -> str:
        return str(await self._app.configure_task("hold").defer_async(**step.model_dump()))

    async def cancel(self, run: str) -> None:
        await self._app.job_manager.cancel_job_by_id_async(int(run), abort=True)

    async def outcome(self, run: str) -> str | None:
        status = await self._app.job_manager.get_job_status_async(int(run))
        return "" if status.value == "succeeded" else None


@asynccontextmanager
async def connect(url: str, settings: Settings) -> AsyncIterator[Client]:
    """A client of an empty database."""
    async with _app(url).open_async() as app:
        await app.schema_manager.apply_schema_async()
        yield _Client(app)


async def work(url: str, settings: Settings, concurrency: int) -> None:
    """A worker."""
    app, options = _app(url), dict(settings)

    @app.task(name="hold", pass_context=True)
    async def _hold(context: JobContext, **step: float) -> None:
        await hold(Hold(**step), str(context.job.id))

    if cron := options.pop("retry_stalled", None):
        _retry_stalled(app, cron, options["stalled_worker_timeout"])
    async with app.open_async():
        await app.run_worker_async(
            concurrency=concurrency, install_signal_handlers=False, **options
        )


def _app(url: str) -> App:
    return App(connector=PsycopgConnector(conninfo=url))


def _retry_stalled(app: App, cron: str, stalled_after: float) -> None:
    @app.periodic(cron=cron)
    @app.task(name="retry_stalled", queueing_lock="retry_stalled", pass_context=True)
    async def _retry(context: JobContext, timestamp: int) -> None:
        jobs: Any = await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=stalled_after)
        for job in jobs:
            await app.job_manager.retry_job(job)


HOLDER = Holder(connect, work)
