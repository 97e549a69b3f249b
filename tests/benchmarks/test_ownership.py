"""The rows about ownership, small, with real workers: that they tell the contenders apart."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

from benchmarks.bench import Bench
from benchmarks.databases import Server, benchmark_server
from benchmarks.ownership.cancel import cancellations
from benchmarks.ownership.scene import Contender
from benchmarks.ownership.takeover import restarts, takeovers
from benchmarks.ownership.zombie import zombies
from benchmarks.report import figure
from benchmarks.rows.contenders import (
    ABSURD,
    CRASH,
    DBOS,
    DEFAULTS,
    PGQUEUER,
    PROCRASTINATE,
    SHORT_LEASE,
    SOON,
    TEMPORAL,
    Chosen,
    contending,
)
from benchmarks.rows.ownership import side_by_side, taken

INSTALLED = {"hand_rolled": True} | {
    name: find_spec(package) is not None
    for name, package in {
        "pgqueuer": "pgqueuer",
        "procrastinate": "procrastinate",
        "absurd": "absurdctl",
        "dbos": "dbos",
    }.items()
}


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    async with benchmark_server(tmp_path_factory.mktemp("bench")) as server:
        yield server


def contender(server: Server, one: Chosen) -> Contender:
    if not INSTALLED[one.holder]:
        pytest.skip(f"{one.holder} is not installed: `make bench` does")
    return Contender(one.holder, one.holder, one.settings, one.words, server.database)


@pytest.mark.parametrize(
    ("one", "told"),
    [
        (CRASH, True),
        (SOON[PGQUEUER], True),
        (SOON[PROCRASTINATE], True),
        (SOON[ABSURD], True),
        (DEFAULTS[ABSURD], False),
        (DEFAULTS[DBOS], False),
    ],
    ids=lambda it: it.words if isinstance(it, Chosen) else "",
)
async def test_a_cancelled_step_is_told_or_runs_to_its_end(
    server: Server, tmp_path: Path, one: Chosen, told: bool
) -> None:
    step = 30 if told else 1
    found = await cancellations(contender(server, one), tmp_path, 4, at_once=2, step=step)
    assert len(found.seconds) == 4
    assert found.told == (4 if told else 0)
    assert min(found.seconds) > 0


async def test_a_zombie_of_ours_is_told_and_its_late_result_is_refused(
    server: Server, tmp_path: Path
) -> None:
    found = await zombies(contender(server, SHORT_LEASE), tmp_path, 1)
    assert (found.told, found.late_results, found.accepted) == (1, 1, 0)
    assert len(found.went_on) == 1


async def test_an_accepted_late_result_is_seen(server: Server, tmp_path: Path) -> None:
    found = await zombies(contender(server, SOON[PGQUEUER]), tmp_path, 1)
    assert (found.told, found.late_results, found.accepted) == (0, 1, 1)


async def test_a_survivor_takes_over(server: Server, tmp_path: Path) -> None:
    found = await takeovers(contender(server, CRASH), tmp_path, 2)
    assert len(found) == 2
    assert all(0 < seconds < 30 for seconds in found)  # the lease is twice as long


async def test_a_run_that_nobody_takes_over_is_watched_in_vain(
    server: Server, tmp_path: Path
) -> None:
    # The lease is 60 seconds, and nobody looks for crashes.
    watchless = Chosen("hand_rolled", "", {"HAND_ROLLED_LEASE_TTL": "60"})
    assert await takeovers(contender(server, watchless), tmp_path, 1, watched=2) == [math.inf]


async def test_a_worker_that_starts_again_in_the_dead_ones_place_goes_on(
    server: Server, tmp_path: Path
) -> None:
    [seconds] = await restarts(contender(server, DEFAULTS[DBOS]), tmp_path, 1)
    assert seconds > 0


async def test_temporal_tells_a_cancelled_step(server: Server, tmp_path: Path) -> None:
    bench = Bench(server, tmp_path, quick=True, say=print)
    async with contending(bench, {TEMPORAL: SOON[TEMPORAL]}) as [temporal]:
        found = await cancellations(temporal, tmp_path, 2)
    assert found.told == 2


async def test_what_goes_wrong_with_one_does_not_cost_the_others(
    server: Server, tmp_path: Path
) -> None:
    bench = Bench(server, tmp_path, quick=True, say=lambda line: None)
    chosen = {
        "wrong": Chosen("hand_rolled", "", {"HAND_ROLLED_NO_SUCH_SETTING": "1"}),
        "right": CRASH,
    }
    found = [
        (one.name, len(seconds))
        async for one, seconds in side_by_side(
            bench, "takeover", chosen, lambda one: takeovers(one, tmp_path, 1)
        )
    ]
    assert found == [("right", 1)]
    assert [(row.measure, row.found) for row in bench.findings] == [("wrong", None)]
    assert bench.failures == 1


@pytest.mark.parametrize(
    ("seconds", "shown", "note"),
    [
        ([1.2, 1.0, 1.1], "1.1 s", "1.0, 1.1, 1.2 s; words; sooner than hand_rolled"),
        ([math.inf] * 3, "> 300 s", "never in 300 s (3 of 3 kills); words"),
        ([math.inf, 250.0, 260.0], "260 s", "never in 300 s (1 of 3 kills); 250.0, 260.0 s; words"),
    ],
)
def test_a_row_of_few_kills_says_each_of_them(
    tmp_path: Path, seconds: list[float], shown: str, note: str
) -> None:
    bench = Bench(server=None, directory=tmp_path, quick=True, say=print)  # type: ignore[arg-type] # nothing is measured
    taken(bench, Contender("it", "pgqueuer", {}, "words", nullcontext), seconds, 2.0)  # type: ignore[arg-type] # nobody works
    [row] = bench.findings
    assert (figure(row.found, row.unit), row.note) == (shown, note)


@pytest.fixture
def place() -> Iterator[Path]:
    """For temporary files of the whole benchmark, whose server is no longer root then."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


@pytest.mark.skipif(not all(INSTALLED.values()), reason="peers are not installed: `make bench`")
async def test_an_interrupted_benchmark_leaves_no_process(place: Path) -> None:
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks", "--quick", "--only", "memory"),
        env={**os.environ, "TMPDIR": str(place)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    async with asyncio.timeout(60):
        while not has_worker(place):
            assert child.returncode is None
            await asyncio.sleep(0.05)
    assert started_in(place) - {child.pid}
    child.send_signal(signal.SIGINT)
    async with asyncio.timeout(30):
        await child.wait()
        while started_in(place):
            await asyncio.sleep(0.1)


def has_worker(directory: Path) -> bool:
    """True once the worker of the measurement has said something."""
    return any(directory.rglob("worker.log"))


def started_in(directory: Path) -> set[int]:
    """Processes that were told to put their temporary files there."""
    found = set()
    for process in psutil.process_iter():
        try:
            if process.environ().get("TMPDIR") == str(directory):
                found.add(process.pid)
        except psutil.Error:
            continue  # it ended, or is another user's
    return found
