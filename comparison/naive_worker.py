"""The worker of the story's first scene: SELECT a pending run, then UPDATE it, then work.

    python -m comparison.naive_worker      with DATABASE_URL and the app's INVESTIGATION_* set

Each statement is fine. Together they are a race: two workers can SELECT the same run before
either has UPDATEd it, and both UPDATEs succeed, since neither asks whether the run is still
pending. `hand_rolled/claim.py` is the same in one statement.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

import psycopg

from investigation.app import APP
from two_workers import Call, Done, advance
from two_workers.engines import new_worker_id
from two_workers.steps import Step, Succeeded

CREATE = """
    DROP SCHEMA IF EXISTS first_scene CASCADE;
    CREATE SCHEMA first_scene;
    CREATE TABLE first_scene.runs (
        run_id text PRIMARY KEY,
        payload json NOT NULL,
        status text NOT NULL DEFAULT 'pending',
        lease_owner text
    )
"""
SELECT = """
    SELECT run_id, payload FROM first_scene.runs
    WHERE status = 'pending' ORDER BY run_id LIMIT 1
"""
UPDATE = "UPDATE first_scene.runs SET status = 'running', lease_owner = %s WHERE run_id = %s"
FINISH = "UPDATE first_scene.runs SET status = 'succeeded' WHERE run_id = %s"


async def main() -> None:
    """Take one run and carry it out."""
    worker = new_worker_id()
    name = f"naive {worker}"
    async with await psycopg.AsyncConnection.connect(
        os.environ["DATABASE_URL"], autocommit=True, application_name=name
    ) as connection:
        print(f"worker {worker} ready", flush=True)  # noqa: T201 - the line that the harness waits for
        row = await (await connection.execute(SELECT)).fetchone()
        if row is None:
            return
        run_id, payload = row
        await connection.execute(UPDATE, (worker, run_id))  # here both of them wait, then go on
        async with APP.resources() as resources:
            await investigate(run_id, payload, worker, resources)
        await connection.execute(FINISH, (run_id,))


async def investigate(run_id: str, payload: Any, worker: str, resources: Any) -> None:
    """Carry out the whole run. Nothing is recorded, so nobody could resume it."""
    plan = APP.plan(payload)
    request, batch = advance(plan, None), 0
    while not isinstance(request, Done):
        keys = [f"{run_id}/{batch}.{i}" for i in range(len(request.steps))]
        outcomes = await asyncio.gather(
            *(
                perform(*pair, run_id, worker, resources)
                for pair in zip(request.steps, keys, strict=True)
            )
        )
        request, batch = advance(plan, outcomes), batch + 1


async def perform(step: Step[Any], key: str, run_id: str, worker: str, resources: Any) -> Succeeded:
    """One step, once. There is no fence to show: the table knows only an owner's name."""
    call = Call(
        run_id=key.rpartition("/")[0],
        key=key,
        fence=(0,),
        attempt=1,
        engine="none",
        worker=worker,
        resources=resources,
        beat=lambda detail: None,
    )
    return Succeeded(value=await APP.effect(step).run(step, call))


if __name__ == "__main__":
    asyncio.run(main())
