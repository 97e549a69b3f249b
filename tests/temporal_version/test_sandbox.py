"""The sandbox: what an agent may not read, although the process has its module imported already."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from temporal_version.plugin import PLUGIN
from tests.temporal_version import agents, reads_at_import, single_file
from tests.temporal_version.app import APP
from tests.temporal_version.conftest import Bench
from two_workers import BadInput, Run, RunFailed


@pytest.mark.parametrize(
    ("agent", "read"),
    [
        (agents.reads_the_clock, "datetime.now"),
        (agents.reads_the_time, "time.time"),
        (agents.reads_a_random_number, "random.random"),
        (agents.reads_a_uuid, "uuid"),
    ],
)
async def test_an_agent_that_reads_the_outside_fails_its_run(
    bench: Bench, agent: Callable[[Any], Any], read: str
) -> None:
    run_id = await bench.start()
    async with bench.worker(replace(APP, agent=agent)):
        with pytest.raises(RunFailed, match=f"RestrictedWorkflowAccessError.*{read}"):
            await bench.engine.result(run_id, timeout=60)


async def test_an_agent_module_that_reads_the_clock_stops_the_worker(bench: Bench) -> None:
    app = replace(APP, agent=reads_at_import.harmless)
    worker = PLUGIN.worker(bench.settings(), [app], worker_id="w")
    with pytest.raises(BadInput, match=r"sandbox refuses .*reads_at_import.*datetime\.now"):
        await worker.run(asyncio.Event())


async def test_an_agent_without_a_name_to_import_is_refused(bench: Bench) -> None:
    async def local(script: object) -> None: ...

    with pytest.raises(BadInput, match="cannot be imported by name"):
        async with bench.worker(replace(APP, agent=local)):
            pass


async def test_an_app_in_one_file_works_and_leaves_no_copies_behind(bench: Bench) -> None:
    runs = [
        Run(
            run_id=f"{bench.settings().task_queue}-{n}",
            kind="single-file",
            payload={"words": ["a"]},
        )
        for n in range(12)
    ]
    async with bench.worker(single_file.APP):
        for run in runs:
            await bench.engine.start(run)
            assert await bench.engine.result(run.run_id, timeout=60) == 1
    gc.collect()
    copies = [o for o in gc.get_objects() if isinstance(o, type) and o.__name__ == "Measure"]
    assert len(copies) < 6, "each run had a copy; those of ended runs are gone"


async def test_one_worker_runs_several_kinds(bench: Bench) -> None:
    settings, stop = bench.settings(), asyncio.Event()
    worker = PLUGIN.worker(settings, [APP, single_file.APP], worker_id="both")
    task = asyncio.create_task(worker.run(stop))
    first = await bench.start("a")
    second = Run(run_id=f"{settings.task_queue}-x", kind="single-file", payload={"words": ["ab"]})
    await bench.engine.start(second)
    assert await bench.engine.result(first, timeout=60) == ["a"]
    assert await bench.engine.result(second.run_id, timeout=60) == 2
    stop.set()
    await task
