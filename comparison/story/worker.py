"""The story's worker: claim a run, beat while it runs, look at the cancel flag between steps."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from comparison.story import table
from comparison.story.perform import perform
from comparison.story.settings import Pool, StorySettings, open_pool
from two_workers import App, Batch, Call, Done, Step, advance, close
from two_workers.steps import Failed, Succeeded, dump_outcome, load_outcome

logger = logging.getLogger(__name__)
NO_FENCE = (0,)
"""All owners that a run ever has look the same to the outside."""


class Cancelled(Exception):
    """The cancel flag was set when the worker looked."""


class StoryWorker:
    """`concurrency` slots that each claim one run at a time and carry it out."""

    def __init__(self, settings: StorySettings, apps: Sequence[App], worker_id: str) -> None:
        self.settings = settings
        self.apps = {app.kind: app for app in apps}
        self.worker_id = worker_id
        self.resources: dict[str, Any] = {}

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set; then finish the runs at hand. Raises `EngineUnavailable`."""
        async with (
            contextlib.AsyncExitStack() as stack,
            open_pool(self.settings, self.worker_id) as self.pool,
        ):
            for kind, app in self.apps.items():
                self.resources[kind] = await stack.enter_async_context(app.resources())
            await asyncio.gather(*(self.slot(stop) for _ in range(self.settings.concurrency)))

    async def slot(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                claimed = await self.execute(table.CLAIM)
                if claimed:
                    await self.carry_out(claimed[0])
                    continue
            except psycopg.OperationalError as error:
                logger.warning("the database is away: %s", error)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), self.settings.poll_interval)

    async def carry_out(self, run: DictRow) -> None:
        heart = asyncio.create_task(self.beat(run["run_id"]))
        end: dict[str, Any] = {"run_id": run["run_id"], "result": None, "failure": None}
        try:
            end |= {"status": "succeeded", "result": Jsonb(await self.drive(run))}
        except psycopg.OperationalError:
            raise  # not the run's fault: its lease will expire, and somebody resume it
        except Cancelled:
            end |= {"status": "cancelled"}
        except Exception as error:  # whatever the agent raises ends its run, not the worker
            end |= {"status": "failed", "failure": f"{type(error).__name__}: {error}"}
        finally:
            heart.cancel()
        await self.execute(table.FINISH, **end)

    async def beat(self, run_id: str) -> None:
        while True:
            await asyncio.sleep(self.settings.heartbeat_interval)
            try:
                await self.execute(table.HEARTBEAT, run_id=run_id)
            except psycopg.OperationalError as error:
                logger.warning("heartbeat of %s: %s", run_id, error)

    async def drive(self, run: DictRow) -> Any:
        """Step the agent through its journal, and on from there."""
        run_id, app = run["run_id"], self.apps[run["kind"]]
        rows = await self.execute(table.READ_JOURNAL, run_id=run_id)
        journal, number = {row["key"]: row["outcome"] for row in rows}, 0
        plan = app.plan(run["payload"])
        try:
            request = advance(plan, None)
            while isinstance(request, Batch):
                [flag] = await self.execute(table.CANCEL_REQUESTED, run_id=run_id)
                if flag["cancel_requested"]:
                    raise Cancelled
                steps = [
                    self.step(app, run_id, f"{run_id}/{number}.{i}", step, journal)
                    for i, step in enumerate(request.steps)
                ]
                request, number = advance(plan, await asyncio.gather(*steps)), number + 1
            assert isinstance(request, Done)
            return app.dump_result(request.value)
        finally:
            close(plan)

    async def step(
        self, app: App, run_id: str, key: str, step: Step[Any], journal: dict[str, Any]
    ) -> Succeeded | Failed:
        """One step: out of the journal, or done and recorded."""
        if key in journal:
            return load_outcome(step, journal[key])
        call = Call(
            run_id=run_id,
            key=key,
            fence=NO_FENCE,
            attempt=1,
            engine="story",
            worker=self.worker_id,
            resources=self.resources[app.kind],
            beat=lambda detail: None,
        )
        outcome, attempt = await perform(app, step, call)
        recorded = Jsonb(dump_outcome(step, outcome))
        await self.execute(
            table.RECORD,
            run_id=run_id,
            key=key,
            kind=step.kind,
            outcome=recorded,
            attempt=attempt,
        )
        return outcome

    pool: Pool

    async def execute(self, statement: str, **values: Any) -> list[DictRow]:
        """One statement, a transaction of its own."""
        who = {"worker": self.worker_id, "lease": self.settings.lease}
        async with self.pool.connection() as connection:
            cursor = await connection.execute(statement, {**who, **values})
            return await cursor.fetchall() if cursor.description else []
