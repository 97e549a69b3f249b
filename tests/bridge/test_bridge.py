"""The bridge without an engine: which batches an asyncio agent becomes, and what it may not do."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from tests.bridge.agents import Ask, Names, asks_from_everywhere
from two_workers import AgentError, App, Batch, Done, StepFailed, advance, close
from two_workers.bridge import Context, plan_of
from two_workers.steps import Failed, Plan, Succeeded

FAILED = Failed(error="ConnectionError", message="refused", attempts=3)


def answer(step: Any) -> Succeeded | Failed:
    return FAILED if step.text.startswith("bad") else Succeeded(value=f"<{step.text}>")


def drive(plan: Plan) -> tuple[Any, list[list[str]]]:
    """Perform a plan to its end. Returns its value and the texts of each batch."""
    batches: list[list[str]] = []
    request = advance(plan, None)
    while isinstance(request, Batch):
        batches.append([step.text for step in request.steps])
        request = advance(plan, [answer(step) for step in request.steps])
    return request.value, batches


def a(text: str) -> Ask:
    return Ask(text=text)


def test_a_gather_is_one_batch_in_the_order_of_asking() -> None:
    @plan_of
    async def agent(ctx: Context, names: Names) -> list[str]:
        return list(await asyncio.gather(*(ctx.step(a(name)) for name in names.names)))

    value, batches = drive(agent(Names(names=["c", "a", "b"])))

    assert batches == [["c", "a", "b"]]
    assert value == ["<c>", "<a>", "<b>"]


def test_branches_of_several_steps_go_on_batch_by_batch() -> None:
    @plan_of
    async def agent(ctx: Context, names: Names) -> list[str]:
        async def branch(name: str) -> str:
            first = await ctx.step(a(name))
            return await ctx.step(a(f"{name} after {first}")) if name == "long" else first

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(branch(name)) for name in names.names]
        await ctx.step(a("last"))
        return [task.result() for task in tasks]

    value, batches = drive(agent(Names(names=["short", "long"])))

    assert batches == [["short", "long"], ["long after <long>"], ["last"]]
    assert value == ["<short>", "<long after <long>>"]


def test_a_failed_child_cancels_its_task_group_and_the_agent_may_go_on() -> None:
    ended: list[str] = []

    @plan_of
    async def agent(ctx: Context, names: Names) -> str:
        async def slow() -> None:
            try:
                for n in range(100):
                    await ctx.step(a(f"slow {n}"))
            finally:
                ended.append("slow")

        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(slow())
                group.create_task(ctx.step(a("bad")))
        except* StepFailed as failures:
            error = failures.exceptions[0]
        return await ctx.step(a(f"instead of {getattr(error, 'error', error)}"))

    value, batches = drive(agent(Names()))

    assert batches[0] == ["slow 0", "bad"]
    assert batches[-1] == ["instead of ConnectionError"]
    assert len(batches) <= 3  # the cancelled branch asked at most once more
    assert value == "<instead of ConnectionError>"
    assert ended == ["slow"]


def test_a_step_cancelled_before_its_batch_is_not_performed() -> None:
    @plan_of
    async def agent(ctx: Context, names: Names) -> str:
        regretted = asyncio.create_task(ctx.step(a("regretted")))
        await asyncio.sleep(0)
        regretted.cancel()
        return await ctx.step(a("wanted"))

    assert drive(agent(Names())) == ("<wanted>", [["wanted"]])


def test_agents_nest_and_share_their_batches() -> None:
    async def inner(ctx: Context, name: str) -> str:
        parts = await asyncio.gather(ctx.step(a(f"{name}1")), ctx.step(a(f"{name}2")))
        return "".join(parts)

    @plan_of
    async def agent(ctx: Context, names: Names) -> str:
        return "|".join(await asyncio.gather(inner(ctx, "x"), inner(ctx, "y")))

    assert drive(agent(Names())) == ("<x1><x2>|<y1><y2>", [["x1", "x2", "y1", "y2"]])


def test_locks_queues_events_and_async_generators_work_between_tasks() -> None:
    @plan_of
    async def agent(ctx: Context, names: Names) -> list[str]:
        queue: asyncio.Queue[str | None] = asyncio.Queue(maxsize=1)

        async def produce() -> None:
            for name in names.names:
                await queue.put(await ctx.step(a(name)))
            await queue.put(None)

        async def consume() -> Any:
            while (item := await queue.get()) is not None:
                yield item

        async with asyncio.TaskGroup() as group:
            group.create_task(produce())
            return [item async for item in consume()]
        raise AssertionError("unreachable")

    assert drive(agent(Names(names=["a", "b"]))) == (["<a>", "<b>"], [["a"], ["b"]])


def test_an_exception_of_the_agent_reaches_the_driver() -> None:
    @plan_of
    async def agent(ctx: Context, names: Names) -> str:
        await ctx.step(a("one"))
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        drive(agent(Names()))


def test_an_uncaught_step_failure_reaches_the_driver() -> None:
    @plan_of
    async def agent(ctx: Context, names: Names) -> str:
        return await ctx.step(a("bad"))

    with pytest.raises(StepFailed, match="after 3 attempt"):
        drive(agent(Names()))


async def in_a_thread() -> None:
    await asyncio.to_thread(threading.get_ident)


async def on_a_socket() -> None:
    await asyncio.open_connection("127.0.0.1", 9)


async def with_a_timeout() -> None:
    async with asyncio.timeout(5):
        await asyncio.sleep(0)


async def by_the_clock() -> None:
    asyncio.get_running_loop().time()


@pytest.mark.parametrize(
    "forbidden",
    [lambda: asyncio.sleep(0.01), with_a_timeout, by_the_clock, in_a_thread, on_a_socket],
    ids=["sleep", "timeout", "clock", "thread", "socket"],
)
def test_timers_threads_and_sockets_are_refused(
    forbidden: Callable[[], Coroutine[Any, Any, None]],
) -> None:
    @plan_of
    async def agent(ctx: Context, names: Names) -> str:
        await ctx.step(a("one"))
        await forbidden()
        return "never"

    with pytest.raises(AgentError, match="make it a step"):
        drive(agent(Names()))


def test_waiting_for_what_no_step_brings_is_an_error_and_not_a_hang() -> None:
    @plan_of
    async def agent(ctx: Context, names: Names) -> str:
        await asyncio.Event().wait()
        return "never"

    with pytest.raises(AgentError, match="no step is left"):
        drive(agent(Names()))


def test_an_agent_that_cancels_itself_fails_instead_of_cancelling_the_driver() -> None:
    @plan_of
    async def agent(ctx: Context, names: Names) -> str:
        await ctx.step(a("one"))
        raise asyncio.CancelledError

    with pytest.raises(AgentError, match="cancelled its own"):
        drive(agent(Names()))


def test_closing_a_plan_runs_the_finally_blocks_of_all_its_tasks() -> None:
    ended: list[str] = []

    @plan_of
    async def agent(ctx: Context, names: Names) -> None:
        async def branch(name: str) -> None:
            try:
                await ctx.step(a(name))
            finally:
                ended.append(name)

        await asyncio.gather(branch("x"), branch("y"))

    plan = agent(Names())
    advance(plan, None)
    close(plan)

    assert sorted(ended) == ["x", "y"]
    close(plan)  # safe to repeat


def test_a_finally_block_of_a_closed_plan_may_not_ask_for_a_step() -> None:
    @plan_of
    async def agent(ctx: Context, names: Names) -> None:
        try:
            await ctx.step(a("one"))
        finally:
            await ctx.step(a("late"))

    plan = agent(Names())
    advance(plan, None)

    with pytest.raises(AgentError, match="being ended"):
        close(plan)


async def test_a_plan_runs_inside_a_running_loop_and_puts_it_back() -> None:
    outer, task = asyncio.get_running_loop(), asyncio.current_task()

    value, _ = drive(asks_from_everywhere(Names(names=["a", "b", "c"])))

    assert value
    assert asyncio.get_running_loop() is outer
    assert asyncio.current_task() is task
    await asyncio.sleep(0)  # the outer loop still runs


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
