"""An app's agent, stepped for an engine that has nothing but a journal.

Both this arm's and the ladder's workers use it. The engine says what happens between two batches
and how a step is looked up and recorded; an effect's timeout and retries are the same for all
engines, however small.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import replace
from typing import Any, TypeAlias

from pydantic import JsonValue

from two_workers import App, Call, Done, PermanentFailure, RetryLater, Step, advance, close
from two_workers.apps import is_wait
from two_workers.steps import Failed, Succeeded

Outcome: TypeAlias = Succeeded | Failed
Once: TypeAlias = Callable[[str, Step[Any]], Coroutine[Any, Any, Outcome]]
"""A step at its place `"n.i"`: out of the journal, or done and recorded."""


async def drive(
    app: App, payload: JsonValue, *, boundary: Callable[[], Awaitable[None]], once: Once
) -> JsonValue:
    """The agent's result. Raises what the agent raises, or the first error of `boundary`, `once`.

    An error of one step cancels the others of its batch.
    """
    plan, number = app.plan(payload), 0
    try:
        request = advance(plan, None)
        while not isinstance(request, Done):
            await boundary()
            steps = enumerate(request.steps)
            outcomes = await _all(once(f"{number}.{i}", step) for i, step in steps)
            request, number = advance(plan, outcomes), number + 1
        return app.dump_result(request.value)
    finally:
        close(plan)


async def _all(steps: Iterable[Coroutine[Any, Any, Outcome]]) -> list[Outcome]:
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(step) for step in steps]
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None
    return [task.result() for task in tasks]


async def perform(app: App, step: Step[Any], call: Call) -> tuple[Outcome, int]:
    """The outcome of a step, and the number of the attempt that brought it."""
    if is_wait(step):
        raise NotImplementedError(f"the story's table has no way to {step.kind}")
    effect, attempt, failures = app.effect(step), 0, 0
    while True:
        attempt += 1
        try:
            async with asyncio.timeout(effect.timeout):
                value = await effect.run(step, replace(call, attempt=attempt))
                return Succeeded(value=value), attempt
        except RetryLater as error:
            pause = error.after
        except Exception as error:  # any error is worth another try, unless it says otherwise
            failures += 1
            if isinstance(error, PermanentFailure) or failures >= effect.retry.max_attempts:
                name = type(error).__name__
                return Failed(error=name, message=str(error), attempts=failures), attempt
            pause = effect.retry.delay(failures)
        await asyncio.sleep(pause)
