"""Tools in a process of their own: a bad pattern ends, and nothing is left behind."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest

from investigation.tools import DEFAULT_CORPUS, run_tool, run_tool_apart

CATASTROPHE = "(a|a)*$"


async def test_it_answers_like_the_plain_function(corpus: Path) -> None:
    for tool, arguments in (("list_files", {}), ("search", {"pattern": "("}), ("nope", {})):
        apart = await run_tool_apart(str(corpus), tool, arguments)
        assert apart == run_tool(str(corpus), tool, arguments)


async def test_an_empty_name_means_the_incident_that_comes_along() -> None:
    assert (await run_tool_apart("", "list_files", {})).ok
    assert DEFAULT_CORPUS.is_dir()


async def test_a_catastrophic_pattern_is_stopped_while_the_loop_keeps_running(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.log").write_text("a" * 40 + "b\n")
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticking = asyncio.create_task(tick())
    result = await run_tool_apart(str(tmp_path), "search", {"pattern": CATASTROPHE}, cpu_seconds=1)
    ticking.cancel()
    assert not result.ok
    assert "took too long" in result.text
    assert ticks > 10, "the event loop was starved"
    assert children() == []


async def test_a_cancelled_tool_leaves_no_process(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("a" * 40 + "b\n")
    running = asyncio.create_task(
        run_tool_apart(str(tmp_path), "search", {"pattern": CATASTROPHE}, seconds=60)
    )
    deadline = time.monotonic() + 30
    while not children() and time.monotonic() < deadline:
        await asyncio.sleep(0.02)
    assert children()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert children() == []


async def test_progress_on_a_large_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("2026-01-01 00:00:00 a line\n" * 100_000)
    told: list[int] = []
    result = await run_tool_apart(
        str(tmp_path), "search", {"pattern": "line"}, progress=told.append
    )
    assert result.ok
    assert len(told) == 5
    assert told == sorted(told)


def children() -> list[psutil.Process]:
    return [
        child
        for child in psutil.Process().children()
        if "investigation.logs.run" in " ".join(child.cmdline())
    ]


@pytest.mark.parametrize(
    ("cpu_seconds", "seconds", "expected"),
    [(1, 60, signal.SIGXCPU), (60, 1, signal.SIGALRM)],
)
async def test_the_process_ends_by_itself_when_its_worker_is_gone(
    tmp_path: Path, cpu_seconds: int, seconds: int, expected: signal.Signals
) -> None:
    """Nobody reads it and nobody kills it: only its own limits are left."""
    (tmp_path / "a.log").write_text("a" * 40 + "b\n")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "investigation.logs.run",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
    )
    request = {
        "root": str(tmp_path),
        "tool": "search",
        "arguments": {"pattern": CATASTROPHE},
        "cpu_seconds": cpu_seconds,
        "seconds": seconds,
    }
    await process.communicate(json.dumps(request).encode())
    assert process.returncode == -expected
