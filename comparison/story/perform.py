"""Carry out one step as its effect's policy says: what every engine does, however small."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from two_workers import App, Call, PermanentFailure, RetryLater, Step
from two_workers.apps import is_wait
from two_workers.steps import Failed, Succeeded


async def perform(app: App, step: Step[Any], call: Call) -> tuple[Succeeded | Failed, int]:
    """The outcome of a step, and the number of the attempt that brought it."""
    if is_wait(step):
        raise NotImplementedError(f"the story's table has no way to {step.kind}")
    effect = app.effect(step)
    for attempt in range(1, effect.retry.max_attempts + 1):
        try:
            async with asyncio.timeout(effect.timeout):
                value = await effect.run(step, replace(call, attempt=attempt))
                return Succeeded(value=value), attempt
        except Exception as error:  # any error is worth another try, unless it says otherwise
            failure = Failed(error=type(error).__name__, message=str(error), attempts=attempt)
            if isinstance(error, PermanentFailure):
                break
            pause = effect.retry.delay(attempt)
            await asyncio.sleep(error.after if isinstance(error, RetryLater) else pause)
    return failure, attempt
