"""The log tools as the app uses them: find the corpus, run a tool, give back a `ToolResult`.

`run_tool` is a plain function for whoever has no heartbeat to lose; `run_tool_apart` runs the same
in a process of its own with a deadline (why: see `investigation.logs.run`), and is what a worker
uses. A tool's failure is a result that the model can read. Exceptions are left to what the engine
should retry: the process could not be started, or it died.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from pydantic import JsonValue

from investigation.logs.files import ToolError, open_corpus
from investigation.logs.run import run
from investigation.steps import ToolResult
from two_workers import BadInput

CPU_SECONDS = 15
"""How much processor time a tool may take in its own process; twice what the largest corpus needs
that is read at all."""
TOOL_SECONDS = 60
"""How long it may take by the clock. Whole seconds, as the kernel counts them."""
DEFAULT_CORPUS = Path(__file__).with_name("corpus")
"""The incident that comes with the package."""
_ANSWER_BYTES = 1024 * 1024


def corpus_path(corpus: str, root: Path | None = None) -> Path:
    """Where a question's corpus is. Raises `ToolError` if it lies outside `root`."""
    if not corpus:
        return DEFAULT_CORPUS
    path = Path(corpus)
    if root is None:
        return path
    try:
        inside = path.resolve().is_relative_to(root.resolve())
    except (OSError, ValueError, RuntimeError) as error:
        raise ToolError(f"corpus {corpus} is not a usable path: {error}") from None
    if not inside:
        raise ToolError(f"corpus {corpus} is outside {root}, the only place that may be read")
    return path


def check_corpus(corpus: str, root: Path | None = None) -> None:
    """Raise `BadInput` with one clear line unless a corpus has something to read."""
    try:
        open_corpus(corpus_path(corpus, root))
    except ToolError as error:
        raise BadInput(f"{error}; expected a folder with text log files") from None


def run_tool(
    corpus: str, name: str, arguments: Mapping[str, JsonValue], *, root: Path | None = None
) -> ToolResult:
    """Run one tool here and now. Knows no deadline: a bad pattern may take hours."""
    try:
        return ToolResult(ok=True, text=run(corpus_path(corpus, root), name, arguments))
    except ToolError as error:
        return ToolResult(ok=False, text=str(error))


async def run_tool_apart(
    corpus: str,
    name: str,
    arguments: Mapping[str, JsonValue],
    *,
    root: Path | None = None,
    cpu_seconds: int = CPU_SECONDS,
    seconds: int = TOOL_SECONDS,
    progress: Callable[[int], None] = lambda _: None,
) -> ToolResult:
    """Run one tool in its own process, which ends after its seconds at the latest.

    `progress(bytes)` tells how much has been read. Raises `RuntimeError` if the process died of
    something else than its deadline.
    """
    try:
        path = str(corpus_path(corpus, root))
    except ToolError as error:
        return ToolResult(ok=False, text=str(error))
    limits = {"cpu_seconds": cpu_seconds, "seconds": seconds}
    request = {"root": path, "tool": name, "arguments": arguments, **limits}
    process = await _start()
    try:
        async with asyncio.timeout(seconds + 5):
            return await _converse(process, json.dumps(request).encode(), progress)
    except _Ended as ended:
        if ended.by_limit:
            return _too_slow(name)
        raise RuntimeError(f"the process of tool {name} ended: {ended}") from None
    except BaseException as error:  # cancelled, say: its work is of no use any more
        with suppress(ProcessLookupError):
            process.kill()
        if isinstance(error, TimeoutError):
            return _too_slow(name)
        raise
    finally:
        await process.wait()


async def _start() -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "investigation.logs.run",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=_ANSWER_BYTES,
        # As this process finds its modules, wherever it was started.
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


class _Ended(Exception):
    """The process ended without an answer."""

    def __init__(self, returncode: int, errors: str) -> None:
        super().__init__(f"exit code {returncode}; {errors}")
        self.by_limit = returncode in (-signal.SIGXCPU, -signal.SIGALRM)


async def _converse(
    process: asyncio.subprocess.Process, request: bytes, progress: Callable[[int], None]
) -> ToolResult:
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    with suppress(BrokenPipeError, ConnectionResetError):  # it died; stdout will tell
        process.stdin.write(request)
        await process.stdin.drain()
        process.stdin.close()
    async for line in process.stdout:
        message = json.loads(line)
        if "progress" in message:
            progress(message["progress"])
        else:
            return ToolResult(ok=message["ok"], text=message["text"])
    errors = (await process.stderr.read()).decode("utf-8", "replace")
    raise _Ended(await process.wait(), errors.strip()[-500:])


def _too_slow(name: str) -> ToolResult:
    return ToolResult(
        ok=False,
        text=f"{name} took too long and was stopped; ask for one file, or use a simpler pattern "
        "without nested repetition",
    )
