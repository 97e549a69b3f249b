"""PgQueuer: a job is picked again when its heartbeat is old; any worker's completion deletes it.

A cancel is pushed by NOTIFY into the job's cancel scope. Settings are those of `PgQueuer.run`, in
seconds. It takes an even number of jobs at a time, two at least.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import asyncpg
from pgqueuer import AsyncpgPoolDriver, Job, PgQueuer, Queries
from pgqueuer.models import Context

from benchmarks.ownership.holding import Hold, hold
from benchmarks.peers.holders import Client, Holder, Settings


class _Client(Client):
    def __init__(self, queries: Queries) -> None:
        self._queries = queries

    async def start(self, step: Hold) -> str:
        [job] = await self._queries.enqueue("hold", step.model_dump_json().encode())
        return str(job)

    async def cancel(self, run: str) -> None:
        await self._queries.mark_job_as_cancelled([int(run)])

    async def outcome(self, run: str) -> str | None:
        found = dict(await self._queries.job_status([int(run)]))
        return "" if found.get(int(run)) == "successful" else None


@asynccontextmanager
async def connect(url: str, settings: Settings) -> AsyncIterator[Client]:
    """A client over a pool, because it cancels with two statements at a time."""
    async with asyncpg.create_pool(url, min_size=1, max_size=4) as pool:
        queries = Queries(AsyncpgPoolDriver(pool))
        await queries.install()
        yield _Client(queries)


async def work(url: str, settings: Settings, concurrency: int) -> None:
    """A worker."""
    app = PgQueuer.from_asyncpg_connection(await asyncpg.connect(url))

    @app.entrypoint("hold", accepts_context=True)
    async def _hold(job: Job, context: Context) -> None:
        with context.cancellation:
            await hold(Hold.model_validate_json(job.payload or b""), str(job.id))

    await app.run(
        batch_size=(concurrency + 1) // 2,
        max_concurrent_tasks=(concurrency + 1) // 2 * 2,
        **{name: timedelta(seconds=seconds) for name, seconds in settings.items()},
    )


HOLDER = Holder(connect, work)
