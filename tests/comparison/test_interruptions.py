"""A comparison that is interrupted, killed or left alone by its workers: it never hangs, leaves
nobody behind, and goes on where it was."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from comparison.arms import find_arm
from comparison.breakers.once import plan_of_one
from comparison.stage import run_arm
from comparison.workers import NoWorkers

from .test_cluster import gone

pytestmark = pytest.mark.timeout(400)
needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="finds the processes by /proc")
COMPARE = (sys.executable, "-m", "two_workers.cli", "compare")
COMPARE_FULL = (
    *(sys.executable, "-m", "two_workers.cli", "compare-full", "--arms", "hand_rolled"),
    *("--faults", "kill+cancel", "--samples", "1", "--blocks", "2"),
)


async def started(command: tuple[str, ...], results: Path) -> asyncio.subprocess.Process:
    """A comparison whose processes all bear a mark."""
    return await asyncio.create_subprocess_exec(
        *(*command, "--results", str(results)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "COMPARISON_MARK": str(results)},
    )


async def until_said(harness: asyncio.subprocess.Process, words: bytes) -> None:
    assert harness.stdout is not None
    said = []
    async for line in harness.stdout:
        said.append(line)
        if words in line:
            return
    pytest.fail(b"".join(said).decode())


def marked(mark: Path) -> list[int]:
    """The processes that inherited the mark: all that the comparison started, servers included."""
    wanted = f"COMPARISON_MARK={mark}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue  # it has just ended, or is not ours to read
    return found


@needs_proc
async def test_an_interrupted_comparison_leaves_no_process_behind(tmp_path: Path) -> None:
    harness = await started(COMPARE, tmp_path)
    await until_said(harness, b"fault 1/")
    pids = marked(tmp_path)
    assert len(pids) > 4, "the harness, the world, three workers"
    harness.send_signal(signal.SIGINT)
    assert await harness.wait() == 130
    assert await gone(*pids)


@needs_proc
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)]
)
async def test_an_interrupted_full_comparison_goes_on_where_it_was(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    harness = await started(COMPARE_FULL, tmp_path)
    await until_said(harness, b"block-02 hand_rolled: fault 1/")
    pids = marked(tmp_path)
    harness.send_signal(number)
    assert await harness.wait() == code
    assert await gone(*pids), "not even a harness that was killed leaves workers behind"

    home = tmp_path / "compare-full" / "1"
    first = home / "block-01" / "hand_rolled" / "evidence.json"
    done = first.stat().st_mtime_ns
    assert not (home / "block-02" / "hand_rolled" / "evidence.json").exists()

    harness = await started(COMPARE_FULL, tmp_path)
    await until_said(harness, b"1 faults in 1 campaigns on 1 arms")
    await until_said(harness, b"Everything is in")
    assert await harness.wait() in (0, 2), "so few faults put few checks to the test"
    assert first.stat().st_mtime_ns == done
    assert (home / "block-02" / "hand_rolled" / "evidence.json").exists()
    assert (home / "report.html").exists()


async def test_workers_that_never_become_ready_end_the_campaign_with_one_clear_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("comparison.stage.worker_app", lambda kinds: ("nowhere.app:APP", {}))
    with pytest.raises(NoWorkers, match="no worker became ready"):
        await run_arm(
            find_arm("story"), plan_of_one("kill", "begin"), tmp_path, print, crowded=False
        )


async def test_workers_that_all_die_end_the_campaign_with_one_clear_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    dying = ("tests.comparison.fatal_app:APP", dict[str, str]())
    monkeypatch.setattr("comparison.stage.worker_app", lambda kinds: dying)
    monkeypatch.setattr("comparison.campaign.QUIET", 5.0)
    with pytest.raises(NoWorkers, match="0 workers are up"):
        await run_arm(
            find_arm("story"), plan_of_one("kill", "begin"), tmp_path, print, crowded=False
        )
