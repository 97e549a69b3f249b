"""Real processes: ready, killed, paused, and never left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from comparison.cluster import Cluster

PARENT = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print("parent", child.pid, "ready", flush=True)
time.sleep(600)
"""

STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("stubborn 0 ready", flush=True)
time.sleep(600)
"""

HARNESS = """
import asyncio, sys
from pathlib import Path
from comparison.cluster import Cluster
from two_workers.cli.process import run_async

async def main():
    async with Cluster.open(Path(sys.argv[1])) as cluster:
        for name in "ab":
            command = [sys.executable, "-c", sys.argv[2]]
            process = await cluster.start(name, command, {}, ready=r"^parent (\\d+) ready")
            print(process.pid, process.ready.result(), flush=True)
        if sys.argv[3] == "fail":
            raise RuntimeError("the comparison broke")
        if sys.argv[3] == "wait":
            print("waiting", flush=True)
            await asyncio.Event().wait()

run_async(main())
"""


def exists(pid: int) -> bool:
    """True while a process runs under `pid` (a zombie that init will reap does not)."""
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        if sys.platform == "linux":
            return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def gone(*pids: int) -> bool:
    """Wait until none of `pids` exists."""
    async with asyncio.timeout(20):
        while any(exists(pid) for pid in pids):
            await asyncio.sleep(0.01)
    return True


async def start_parent(cluster: Cluster) -> tuple[int, int]:
    command = [sys.executable, "-c", PARENT]
    process = await cluster.start("parent", command, {}, ready=r"^parent (\d+) ready")
    return process.pid, int(process.ready.result())


async def test_a_killed_process_takes_its_children_with_it(cluster: Cluster) -> None:
    parent, child = await start_parent(cluster)
    [process] = cluster.running
    await process.killed()
    assert process.child.returncode == -signal.SIGKILL
    assert await gone(parent, child)


async def test_a_paused_process_is_stopped_by_the_kernel_and_goes_on_when_resumed(
    cluster: Cluster,
) -> None:
    counting = "import itertools, time\nprint('counter 0 ready', flush=True)\n"
    counting += "for n in itertools.count(): print(n, flush=True); time.sleep(0.005)"
    command = [sys.executable, "-c", counting]
    process = await cluster.start("counter", command, {}, ready=r"^counter (\d) ready")
    await process.stopped()
    await asyncio.sleep(0.2)  # what it had said before it stopped reaches the log
    size = process.log.stat().st_size
    await asyncio.sleep(0.2)
    assert process.log.stat().st_size == size
    process.resume()
    async with asyncio.timeout(20):
        while process.log.stat().st_size == size:
            await asyncio.sleep(0.01)


async def test_leaving_the_block_stops_everybody_even_who_is_paused_or_stubborn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("comparison.cluster.GRACE", 0.3)
    async with Cluster.open(tmp_path) as cluster:
        parent, child = await start_parent(cluster)
        command = [sys.executable, "-c", STUBBORN]
        stubborn = await cluster.start("stubborn", command, {}, ready=r"^stubborn (\d) ready")
        await cluster.running[0].stopped()
    assert await gone(parent, child, stubborn.pid)


async def test_a_process_that_ends_before_it_is_ready_shows_its_last_words(
    cluster: Cluster,
) -> None:
    command = [sys.executable, "-c", "raise SystemExit('no database here')"]
    with pytest.raises(RuntimeError, match="no database here"):
        await cluster.start("broken", command, {}, ready="^never (.*)")


@pytest.mark.parametrize(
    ("how", "number", "code"),
    [
        ("end", None, 0),
        ("fail", None, 1),
        ("wait", signal.SIGINT, 1),
        ("wait", signal.SIGTERM, 1),
        ("wait", signal.SIGKILL, 1),
    ],
    ids=["success", "failure", "SIGINT", "SIGTERM", "SIGKILL"],
)
async def test_no_process_outlives_the_harness(
    tmp_path: Path, how: str, number: signal.Signals | None, code: int
) -> None:
    harness = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", HARNESS, str(tmp_path), PARENT, how),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert harness.stdout is not None
    lines = [await harness.stdout.readline() for _ in range(2)]
    pids = [int(pid) for line in lines for pid in line.split()]
    assert len(pids) == 4
    if number is not None:
        assert await harness.stdout.readline() == b"waiting\n"
        harness.send_signal(number)
    returned = await harness.wait()
    assert (returned != 0) == (code != 0)
    assert await gone(*pids)
