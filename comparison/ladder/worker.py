"""The ladder's worker: one run at a time, by whatever statements its form of the engine has."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass
from typing import Any

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb
from pydantic import JsonValue

from comparison.ladder.table import CANCEL_REQUESTED, READ_JOURNAL, Form
from comparison.story.adapter.drive import Outcome, drive, perform
from comparison.story.adapter.settings import Pool
from two_workers import App, Call, Step, TwoWorkersError
from two_workers.steps import dump_outcome, load_outcome

logger = logging.getLogger(__name__)


class LeaseLost(Exception):
    """A write of this worker was refused: somebody else owns the run now."""


class Cancelled(Exception):
    """The cancel flag was set when the worker looked."""


@dataclass
class LadderWorker:
    """`worker` is unique for each process; `owner` is what it writes into the table.

    `engine` is what it calls itself to the outside. Durations in seconds.
    """

    form: Form
    app: App
    pool: Pool
    worker: str
    owner: str
    engine: str
    lease: float
    beat_every: float
    poll: float
    resources: Any = None

    async def run(self) -> None:
        """Claim and carry out runs until cancelled."""
        async with self.app.resources() as self.resources:
            while True:
                run = await self.claim()
                if run is None:
                    await asyncio.sleep(self.poll)
                else:
                    await self.carry_out(run)

    async def claim(self) -> DictRow | None:
        run: DictRow = {}
        for statement in self.form.claim:
            rows = await self.say(statement, **{k: run[k] for k in run if k != "payload"})
            if not rows:
                return None
            run = rows[0]
        return run

    async def carry_out(self, run: DictRow) -> None:
        """Work under the lease; losing it, by whatever write, stops the work at once."""
        work = asyncio.create_task(self.to_its_end(run))
        heart = asyncio.create_task(self.beat(run))
        await asyncio.wait([work, heart], return_when=asyncio.FIRST_COMPLETED)
        for task in (work, heart):
            task.cancel()
        for task in (work, heart):
            with contextlib.suppress(asyncio.CancelledError, LeaseLost):
                await task

    async def to_its_end(self, run: DictRow) -> None:
        end: dict[str, Any] = {"status": "succeeded", "result": None, "failure": None}
        try:
            end["result"] = Jsonb(await self.drive(run))
        except Cancelled:
            end["status"] = "cancelled"
        except TwoWorkersError as error:
            end |= {"status": "failed", "failure": str(error)}
        await self.write(self.form.finish, run, **end)

    async def beat(self, run: DictRow) -> None:
        while self.form.heartbeat is not None:
            await asyncio.sleep(self.beat_every)
            await self.write(self.form.heartbeat, run)
        await asyncio.Event().wait()

    async def drive(self, run: DictRow) -> JsonValue:
        """Step the agent through its journal, and on from there."""
        rows = await self.say(READ_JOURNAL, run_id=run["run_id"])
        journal = {row["key"]: row["outcome"] for row in rows}

        async def boundary() -> None:
            [flag] = await self.say(CANCEL_REQUESTED, run_id=run["run_id"])
            if flag["cancel_requested"]:
                raise Cancelled

        async def once(place: str, step: Step[Any]) -> Outcome:
            key = f"{run['run_id']}/{place}"
            if key in journal:
                return load_outcome(step, journal[key])
            outcome, attempt = await perform(self.app, step, self.call(run, key))
            recorded = Jsonb(dump_outcome(step, outcome))
            values = {"key": key, "kind": step.kind, "outcome": recorded, "attempt": attempt}
            await self.write(self.form.record, run, **values)
            return outcome

        return await drive(self.app, run["payload"], boundary=boundary, once=once)

    def call(self, run: DictRow, key: str) -> Call:
        return Call(
            run_id=run["run_id"],
            key=key,
            fence=(run["lease_generation"],),
            attempt=1,
            engine=self.engine,
            worker=self.worker,
            resources=self.resources,
            beat=lambda detail: None,
        )

    async def write(self, statement: str, run: DictRow, **values: Any) -> None:
        """A write as the run's owner. Raises `LeaseLost` when the table refuses it."""
        owned = {"run_id": run["run_id"], "generation": run["lease_generation"]}
        if not await self.say(statement, **owned, **values):
            generation = run["lease_generation"]
            logger.warning(
                "lost %s generation %s: its write was refused", run["run_id"], generation
            )
            raise LeaseLost(run["run_id"])

    async def say(self, statement: str, **values: Any) -> list[DictRow]:
        """One statement, a transaction of its own."""
        who = {"owner": self.owner, "worker": self.worker}
        times = {"lease": self.lease, "patience": self.form.patience}
        async with self.pool.connection() as connection:
            cursor = await connection.execute(statement, {**who, **times, **values})
            return await cursor.fetchall() if cursor.description else []
