"""The bridge without an engine: which batches an asyncio agent becomes, and what it may not do."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.bridge.agents import Names, asks_from_everywhere
from tests.bridge.driver import a, drive
from two_workers import AgentError, StepFailed, advance, close
from two_workers.bridge import Context, plan_of


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
