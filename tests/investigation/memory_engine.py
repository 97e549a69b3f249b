"""An engine of thirty lines for tests of the app: memory instead of a journal, no recovery.

Runs an agent with its real effects, so that the app can be tested without either engine.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from two_workers import App, Batch, Call, Done, PermanentFailure, RetryLater, Step, advance
from two_workers import fingerprint as identity
from two_workers.steps import Failed, Outcome, Succeeded, dump_outcome, load_outcome


@dataclass
class Driver:
    """Runs one app; `asked` has the fingerprints, `recorded` the outcomes of the last run."""

    app: App
    run_id: str = "run-1"
    asked: list[list[str]] = field(default_factory=list)
    steps: list[list[Step[Any]]] = field(default_factory=list)
    recorded: list[list[Any]] = field(default_factory=list)
    attempts: int = 3

    async def run(self, payload: Any) -> Any:
        async with self.app.resources() as resources:
            plan = self.app.plan(payload)
            request = advance(plan, None)
            while not isinstance(request, Done):
                self.asked.append([identity(step) for step in request.steps])
                self.steps.append(list(request.steps))
                outcomes = await self._perform(request, resources)
                records = [dump_outcome(s, o) for s, o in zip(request.steps, outcomes, strict=True)]
                self.recorded.append(records)
                request = advance(
                    plan, [load_outcome(s, r) for s, r in zip(request.steps, records, strict=True)]
                )
        return request.value

    async def _perform(self, batch: Batch, resources: Any) -> list[Outcome]:
        n = len(self.asked) - 1
        return await asyncio.gather(
            *(self._once(step, f"{n}.{i}", resources) for i, step in enumerate(batch.steps))
        )

    async def _once(self, step: Step[Any], place: str, resources: Any) -> Outcome:
        effect = self.app.effect(step)
        for attempt in range(1, self.attempts + 1):
            call = make_call(resources, key=f"{self.run_id}/{place}", attempt=attempt)
            try:
                return Succeeded(value=await effect.run(step, call))
            except (PermanentFailure, RetryLater) as error:
                failure = error
                break
            except Exception as error:
                failure = error
        return Failed(error=type(failure).__name__, message=str(failure), attempts=attempt)


def make_call(resources: Any, *, key: str = "run-1/0.0", attempt: int = 1) -> Call:
    return Call(
        run_id=key.partition("/")[0],
        key=key,
        fence=(18,),
        attempt=attempt,
        engine="memory",
        worker="worker-7",
        resources=resources,
        beat=lambda detail: None,
    )
