"""Operate the store from the command line, as an operator would, against a real server."""

from __future__ import annotations

import asyncio
import json
import subprocess
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.cli.command import clean_environment, started, two_workers
from two_workers import Engine, Limits, Run, engine_plugin


@pytest.fixture(scope="module")
async def database(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    plugin = engine_plugin("hand_rolled")
    env = clean_environment()
    async with plugin.embedded(tmp_path_factory.mktemp("operations"), env) as found:
        await plugin.prepare(plugin.settings({**env, **found}))
        yield found["DATABASE_URL"]


@pytest.fixture
async def engine(database: str) -> AsyncIterator[Engine]:
    plugin = engine_plugin("hand_rolled")
    async with plugin.connect(plugin.settings({"DATABASE_URL": database})) as engine:
        yield engine


@pytest.fixture
async def run_id(engine: Engine) -> str:
    run = Run(run_id=f"op-{uuid.uuid4().hex[:8]}", kind="nobody-serves-this", payload={"n": 1})
    await engine.start(run)
    return run.run_id


async def said(database: str, *arguments: str, code: int = 0) -> str:
    done: subprocess.CompletedProcess[str] = await asyncio.to_thread(
        two_workers, *arguments, DATABASE_URL=database
    )
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


async def test_runs_are_listed_and_shown(database: str, run_id: str) -> None:
    assert run_id in await said(database, "runs", "list", "--state", "pending")
    assert "no runs" in await said(database, "runs", "list", "--tenant", "nobody")
    shown = await said(database, "runs", "show", run_id)
    assert "nobody-serves-this" in shown
    assert "pending" in shown
    missing = await said(database, "runs", "show", "no-such-run", code=1)
    assert "no run 'no-such-run'" in missing


async def test_a_run_is_suspended_resumed_cancelled_and_started_again(
    database: str, run_id: str, engine: Engine
) -> None:
    assert "suspended" in await said(database, "runs", "suspend", run_id)
    assert "pending" in await said(database, "runs", "resume", run_id)
    assert "only a failed" in await said(database, "runs", "retry", run_id, code=2)
    assert "cancelled" in await said(database, "runs", "cancel", run_id, "--reason", "a test")
    assert "cannot be resumed" in await said(database, "runs", "resume", run_id, code=2)
    again = f"{run_id}-again"
    assert again in await said(database, "runs", "retry", run_id, "--as", again)
    assert (await engine.get(again)).state == "pending"


async def test_who_answers_the_four_questions(database: str, run_id: str) -> None:
    answer = await said(database, "who")
    line = next(text for text in answer.splitlines() if text.strip().startswith(run_id))
    assert "yes" in line


async def test_ready_runs_that_nobody_serves_are_reported(database: str, run_id: str) -> None:
    assert "no live worker takes this kind" in await said(database, "workers", "list")


async def test_a_working_worker_is_listed(database: str, tmp_path: Path) -> None:
    with started("worker", output=tmp_path / "out", DATABASE_URL=database) as command:
        command.until(lambda: "ready" in command.text(), what="ready")
        worker_id = command.text().split()[1]
        async with asyncio.timeout(60):
            while worker_id not in await said(database, "workers", "list"):
                pass


async def test_limits_are_set_one_by_one(database: str, engine: Engine) -> None:
    await engine.set_limits(Limits())
    await said(database, "limits", "set", "max_active=10", "tenant:acme=5", "pool:model=8")
    await said(database, "limits", "set", "max_active_per_tenant=3", "tenant:acme=none")
    assert await engine.limits() == Limits(
        max_active=10, max_active_per_tenant=3, pools={"model": 8}
    )
    assert "10" in await said(database, "limits", "show")
    for wrong, hint in [("max=1", "unknown limit"), ("max_active=lots", "NAME=NUMBER")]:
        assert hint in await said(database, "limits", "set", wrong, code=2)
    await engine.set_limits(Limits())


async def test_ended_runs_are_pruned_and_others_stay(
    database: str, run_id: str, engine: Engine
) -> None:
    await engine.cancel(run_id)
    assert "expected a number and a unit" in await said(
        database, "prune", "--older-than", "soon", code=2
    )
    await said(database, "prune", "--older-than", "1d")
    assert run_id in json.dumps([view.run_id for view in await engine.list_runs(limit=1000)])
    await said(database, "prune", "--older-than", "0s")
    assert run_id not in json.dumps([view.run_id for view in await engine.list_runs(limit=1000)])


async def test_counters_that_match_are_left_alone(database: str) -> None:
    assert "every counter matches" in await said(database, "reconcile")


@pytest.mark.parametrize("command", [["runs", "suspend", "x"], ["workers", "list"], ["reconcile"]])
def test_temporal_names_its_own_tool_instead(command: list[str]) -> None:
    done = two_workers(*command, "--engine", "temporal")
    assert done.returncode == 2
    assert "its own tools" in done.stderr
