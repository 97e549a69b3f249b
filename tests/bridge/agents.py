"""An agent that tries to be random: run as a module, it prints the batches it asks for."""

from __future__ import annotations

import asyncio

from pydantic import BaseModel

from two_workers import Batch, Step, StepFailed, advance
from two_workers.bridge import Context, plan_of
from two_workers.steps import Failed, Succeeded


class Ask(Step[str]):
    text: str


class Names(BaseModel):
    names: list[str] = []


@plan_of
async def asks_from_everywhere(ctx: Context, names: Names) -> list[str]:
    """Iterates over sets of tasks, whose order in asyncio's own loop is that of addresses."""
    tasks = {asyncio.create_task(ctx.step(Ask(text=name))) for name in names.names}
    done, _ = await asyncio.wait(tasks)
    order = [await ctx.step(Ask(text=f"again {task.result()}")) for task in done]
    again = [asyncio.create_task(ctx.step(Ask(text=text))) for text in order]
    for earliest in asyncio.as_completed(again):
        order.append(await earliest)
    return order + await cleans_up(ctx, names)


@plan_of
async def fans_out(ctx: Context, names: Names) -> list[str]:
    """What Temporal's sandbox lets an agent use directly: `wait` and `as_completed` it refuses."""
    first = await asyncio.gather(*(ctx.step(Ask(text=name)) for name in names.names))
    return first + await cleans_up(ctx, names)


async def cleans_up(ctx: Context, names: Names) -> list[str]:
    """A group that fails, whose children clean up with steps, in the order of their cancelling."""
    order: list[str] = []

    async def child(name: str) -> None:
        try:
            await ctx.step(Ask(text=name))
            await ctx.step(Ask(text=f"more {name}"))
        except asyncio.CancelledError:
            order.append(await ctx.step(Ask(text=f"cleanup {name}")))
            raise

    try:
        async with asyncio.TaskGroup() as group:
            for name in names.names:
                group.create_task(child(name))
            group.create_task(ctx.step(Ask(text="bad")))
    except* StepFailed:
        order.append(await ctx.step(Ask(text="after the group")))
    return order


@plan_of
async def sleeps_by_the_clock(ctx: Context, names: Names) -> str:
    await ctx.step(Ask(text="before"))
    await asyncio.sleep(0.01)
    return "never"


def main() -> None:
    ballast = [object() for _ in range(hash("ballast") % 1000)]  # moves every later address
    plan = asks_from_everywhere(Names(names=list("abcdefgh")))
    request = advance(plan, None)
    while isinstance(request, Batch):
        texts = [step.text for step in request.steps]  # type: ignore[attr-defined]  # all are Ask
        print(texts)  # noqa: T201  # the output is what the test compares
        request = advance(
            plan,
            [
                Failed(error="E", message="m", attempts=1)
                if text == "bad"
                else Succeeded(value=f"<{text}>")
                for text in texts
            ],
        )
    print(request.value, len(ballast) >= 0)  # noqa: T201


if __name__ == "__main__":
    main()
