"""Makes the saved histories that `test_replay.py` replays.

    python -m tests.temporal_version.record_histories [NAME ...]

Run it when the driver changes on purpose, and look at the difference before committing it: a
history that no longer replays is a run somewhere that no longer continues.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

from temporalio.worker import Worker

from temporal_version.activities import activities
from temporal_version.engine import TemporalEngine
from temporal_version.registry import register
from temporal_version.worker import sandbox
from tests.temporal_version import app
from tests.temporal_version.changed_driver import Patched
from tests.temporal_version.conftest import Bench, bench_at, new_server
from two_workers import Limits, RunFailed

HISTORIES = Path(__file__).with_name("histories")


async def save(engine: TemporalEngine, run_id: str, name: str) -> None:
    history = await engine.client.get_workflow_handle(run_id).fetch_history()
    (HISTORIES / f"{name}.json").write_text(_without_paths(history.to_json()))


def _without_paths(history: str) -> str:
    """Stack traces name files of the machine that made them."""
    return history.replace(f"{sys.prefix}/", "").replace(f"{Path(__file__).parents[2]}/", "")


async def everything(bench: Bench) -> None:
    run_id = await bench.start()
    await bench.engine.signal(run_id, "go", {"by": "me"}, signal_id="1")
    async with bench.worker(app.EVERYTHING):
        await bench.engine.result(run_id, timeout=60)
    await save(bench.engine, run_id, "everything")


async def in_sequence(bench: Bench) -> None:
    run_id = await bench.start("a", "b", ledger="")
    async with bench.worker():
        await bench.engine.result(run_id, timeout=60)
    await save(bench.engine, run_id, "in_sequence")


async def failed_step(bench: Bench) -> None:
    run_id = await bench.start("a", how="fail:99", ledger="")
    async with bench.worker():
        try:
            await bench.engine.result(run_id, timeout=60)
        except RunFailed:
            await save(bench.engine, run_id, "failed_step")


async def cancelled_fan_out(bench: Bench) -> None:
    run_id = await bench.start(*"abcdefgh", how="hold")
    async with bench.worker(app.PARALLEL):
        await bench.ledger.until("begin", 8)
        await bench.engine.cancel(run_id)
        await bench.ledger.until("cancelled", 8)
        await bench.engine.client.get_workflow_handle(run_id).describe()
        async with asyncio.timeout(60):
            while not (await bench.engine.get(run_id)).state.is_final:
                await asyncio.sleep(0.05)
    await save(bench.engine, run_id, "cancelled_fan_out")


async def under_limits(bench: Bench) -> None:
    await bench.engine.set_limits(Limits(max_active=1, pools={"model": 1}))
    run_id = await bench.start("a", "b", ledger="")
    async with bench.worker(app.PARALLEL):
        await bench.engine.result(run_id, timeout=60)
    await save(bench.engine, run_id, "under_limits")
    await save(bench.engine, bench.settings().gate, "gate")


async def after_a_patch(bench: Bench) -> None:
    """By a driver that was changed behind a patch: its history holds the patch's marker."""
    settings = bench.settings()
    register(app.APP, settings)
    run_id = await bench.start("a", "b", ledger="")
    async with Worker(
        bench.engine.client,
        task_queue=settings.queue("work"),
        workflows=[Patched],
        workflow_runner=sandbox([app.APP]),
        activities=activities(app.APP, settings, worker_id="patched", resources=None),
    ):
        await bench.engine.result(run_id, timeout=60)
    await save(bench.engine, run_id, "after_a_patch")


RECORDS = (everything, in_sequence, failed_step, cancelled_fan_out, under_limits, after_a_patch)


async def main(*names: str) -> None:
    HISTORIES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        server = new_server(Path(scratch))
        await server.start()
        try:
            for record in RECORDS:
                if names and record.__name__ not in names:
                    continue
                directory = Path(scratch) / record.__name__
                directory.mkdir()
                async with bench_at(server.address, directory) as bench:
                    await record(bench)
        finally:
            await server.stop()


if __name__ == "__main__":
    os.chdir(Path(__file__).parents[2])
    asyncio.run(main(*sys.argv[1:]))
