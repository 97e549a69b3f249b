"""What the test sees of an effect's executions, and how it holds them.

`how` says what an execution does: `answer` at once; `hold` until the test opens `gate`;
`fail:N` the first N times, then answer; `always_fail`; `permanent`; `later` once with
`RetryLater`; `beat` a checkpoint and fail once; `price:N` answers and costs N micro-dollars.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.contract.steps import Answer, Ask, Commit
from two_workers import App, Call, Effect, PermanentFailure, Retry, RetryLater


@dataclass
class Probe:
    """Shared by the effects of one in-process worker and the test."""

    begun: list[Call] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    in_flight: Counter[str] = field(default_factory=Counter)
    peak: int = 0
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    def keys(self) -> list[str]:
        return [call.key for call in self.begun]

    async def until(self, true: Callable[[], bool], *, deadline: float = 60.0) -> None:
        """Wait for a condition over this probe. The deadline only bounds a failing test."""
        async with asyncio.timeout(deadline), self.changed:
            await self.changed.wait_for(true)

    async def _notify(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    @asynccontextmanager
    async def executing(self, call: Call) -> AsyncIterator[None]:
        self.begun.append(call)
        self.in_flight[call.run_id] += 1
        self.peak = max(self.peak, self.in_flight.total())
        await self._notify()
        try:
            yield
            self.ended.append(call.key)
        except asyncio.CancelledError:
            self.cancelled.append(call.key)
            raise
        finally:
            self.in_flight[call.run_id] -= 1
            await asyncio.shield(self._notify())


async def perform(step: Ask | Commit, call: Call) -> Answer:
    probe: Probe = call.resources
    async with probe.executing(call):
        return await _as_told(step, call, probe)


async def _as_told(step: Ask | Commit, call: Call, probe: Probe) -> Answer:
    executions = probe.keys().count(call.key)
    match step.how.split(":"):
        case ["answer"]:
            return Answer(text=step.text)
        case ["hold"]:
            while not probe.gate.is_set():
                call.beat(None)
                try:
                    await asyncio.wait_for(probe.gate.wait(), 0.05)
                except TimeoutError:
                    continue
            return Answer(text=step.text)
        case ["fail", times] if executions <= int(times):
            raise ConnectionError(f"failure {executions}")
        case ["always_fail"]:
            raise ConnectionError("no")
        case ["permanent"]:
            raise PermanentFailure("the model refused")
        case ["later"] if executions <= 4:
            raise RetryLater("429", after=0.05)
        case ["beat"] if call.checkpoint is None:
            call.beat({"page": 7})
            raise ConnectionError("died on page 8")
        case ["beat"]:
            return Answer(text=f"{step.text} from {call.checkpoint}")
        case ["price", price]:
            return Answer(text=step.text, price=int(price))
        case _:
            return Answer(text=step.text)


def contract_app(kind: str, agent: Callable[[Any], Any], probe: Probe) -> App:
    """The app of one test: a kind of its own, so that no other test's worker takes its runs."""

    @asynccontextmanager
    async def resources() -> AsyncIterator[Probe]:
        yield probe

    quick = Retry(max_attempts=3, initial=0.05, backoff=1.0)
    return App(
        kind=kind,
        agent=agent,
        effects={
            Ask: Effect(
                perform,
                timeout=60,
                retry=quick,
                pool="model",
                worst_case=lambda step: 1000 if step.how.startswith("price") else 0,
                cost=lambda answer: answer.price,
            ),
            Commit: Effect(perform, timeout=60, retry=quick, uninterruptible=True),
        },
        resources=resources,
    )
