"""Agents of three frameworks, killed in the middle and resumed by another process, on each engine.

Skipped without the frameworks: pip install 'two-workers[frameworks]'.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.app_bench import Bench
from two_workers import AgentError, App
from two_workers.bridge import Context

ROOT = Path(__file__).parents[2]
FRAMEWORKS = {"openai_agents": "agents", "pydantic_ai_": "pydantic_ai", "langgraph_": "langgraph"}


@pytest.fixture(params=FRAMEWORKS)
def path(request: pytest.FixtureRequest) -> str:
    """Where the app of a framework is."""
    package = FRAMEWORKS[request.param]
    if find_spec(package) is None:
        pytest.skip(f"no {package}: pip install 'two-workers[frameworks]'")
    return f"examples.frameworks.{request.param}"


@asynccontextmanager
async def worker_process(bench: Bench, app_path: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A worker of its own process, each of whose steps takes a moment longer; killed on leaving."""
    command = [sys.executable, "-m", "two_workers.cli", "worker", "--engine", bench.plugin.name]
    process = await asyncio.create_subprocess_exec(
        *command,
        *("--app", "investigation.service.paced:APP"),
        cwd=ROOT,
        env={**bench.env, "DEMO_APP": app_path, "DEMO_PACE": "0.3", "PYTHONUNBUFFERED": "1"},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(90):
            assert b"ready" in await process.stdout.readline()
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
            await process.wait()


@pytest.mark.timeout(240)
async def test_a_frameworks_agent_is_resumed_after_sigkill(bench: Bench, path: str) -> None:
    app: App = import_module(path).APP
    run_id = await bench.start(app, {"text": "Why do checkouts fail?"})

    async with worker_process(bench, f"{path}:APP") as first:
        async with asyncio.timeout(90):
            while len(await bench.engine.steps(run_id)) < 3:
                view = await bench.engine.get(run_id)
                assert not view.state.is_final, view.failure
                await asyncio.sleep(0.05)
        first.send_signal(signal.SIGKILL)
        await first.wait()
    killed = await bench.engine.get(run_id)
    before = await bench.engine.steps(run_id)
    async with worker_process(bench, f"{path}:APP"):
        result = await bench.engine.result(run_id, timeout=90)

    after = {record.key: record for record in await bench.engine.steps(run_id)}
    assert not killed.state.is_final
    assert len(after) > len(before) >= 3
    assert all(after[record.key] == record for record in before)  # nothing was executed again
    assert len({record.worker for record in after.values()}) == 2
    assert isinstance(result, dict)
    assert "all connections of a pool were in use" in str(result["answer"])
    assert result["findings"]


async def test_a_stream_is_refused_with_a_reason(path: str) -> None:
    from examples.frameworks.shared import StepOpenAI

    client = StepOpenAI(Context(None))  # type: ignore[arg-type]  # it never gets as far as a step
    with pytest.raises(AgentError, match="cannot stream"):
        await client.chat.completions.create(model="m", messages=[], stream=True)
