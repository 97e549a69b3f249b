"""A bridged agent as an app's agent: its types, its address, and its replay."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

from pydantic import BaseModel

from tests.bridge.agents import Names, asks_from_everywhere
from tests.bridge.driver import a, answer, drive
from two_workers import AgentError, App, Batch, Done, advance, close
from two_workers.bridge import Context, plan_of
from two_workers.steps import Failed, Succeeded


class Folder(BaseModel):
    paths: list[str]


class Summary(BaseModel):
    text: str


@plan_of
async def summarise(ctx: Context, folder: Folder) -> Summary:
    """Summarise a folder."""
    return Summary(text=await ctx.step(a("+".join(folder.paths))))


def test_an_app_takes_the_plan_with_its_types_and_its_address() -> None:
    app = App(kind="summary", agent=summarise)

    value, batches = drive(app.plan({"paths": ["a", "b"]}))

    assert batches == [["a+b"]]
    assert app.dump_result(value) == {"text": "<a+b>"}
    found = getattr(sys.modules[summarise.__module__], summarise.__qualname__)
    assert found is summarise
    assert summarise.__doc__ == "Summarise a folder."


def test_a_replay_under_another_hash_seed_asks_for_the_same_batches() -> None:
    """Sets of tasks, cancellation order of a group, as_completed: all must not depend on it."""
    seen = {
        subprocess.run(
            [sys.executable, "-m", "tests.bridge.agents"],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2", "3")
    }

    assert len(seen) == 1
    assert "cleanup" in seen.pop()


def test_replaying_recorded_outcomes_resumes_at_the_same_place() -> None:
    plan = asks_from_everywhere(Names(names=["a", "b", "c", "d"]))
    recorded: list[list[Succeeded | Failed]] = []
    expected: list[Batch | Done] = [advance(plan, None)]
    while isinstance(batch := expected[-1], Batch):
        recorded.append([answer(step) for step in batch.steps])
        expected.append(advance(plan, recorded[-1]))

    for died_after in range(len(recorded) + 1):
        second = asks_from_everywhere(Names(names=["a", "b", "c", "d"]))
        request = advance(second, None)
        for position in range(died_after):
            assert request == expected[position]
            request = advance(second, recorded[position])
        assert request == expected[died_after]
        with contextlib.suppress(AgentError, BaseExceptionGroup):  # its cleanup asks for steps
            close(second)
