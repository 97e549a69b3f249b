"""What an agent app brings: a kind, an agent, and the effects of its steps.

    APP = App(
        kind="investigation",
        agent=investigate,
        effects={AskModel: Effect(ask_model, timeout=60, pool="model"), Search: Effect(search)},
        resources=open_clients,
    )

An app imports no engine and an engine imports no app: a worker is told `module:NAME`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter

from two_workers.errors import BadInput
from two_workers.money import MicroUSD
from two_workers.steps import Plan, Sleep, Step, WaitForSignal

Fence = tuple[int, ...]
"""Rises with every takeover of a step; compared left to right.

(generation,) on hand_rolled; (start time in microseconds, attempt) on Temporal.
"""


@dataclass(frozen=True, kw_only=True)
class Call:
    """One execution of one step by one worker: what an effect gets to know.

    `key` names the step (`run_id/batch.position`): equal on both engines and on every attempt, so
    it is the idempotency key. `fence` rises with every takeover, so something outside can refuse
    a zombie. `beat(detail)` says that the step made progress; cheap, callable as often as you
    like, also from a thread. `checkpoint` is the last detail that an earlier attempt's beat
    brought home, or None. `attempt` counts from 1, deferrals by `RetryLater` included.
    """

    run_id: str
    key: str
    fence: Fence
    attempt: int
    engine: str
    worker: str
    resources: Any
    beat: Callable[[JsonValue], None]
    checkpoint: JsonValue = None


class Retry(BaseModel):
    """How often and how soon a step is tried again after an error. Durations in seconds.

    A worker's death is not an error of the step: it does not use up an attempt here.
    """

    model_config = ConfigDict(frozen=True)
    max_attempts: int = 3
    initial: float = 0.5
    backoff: float = 2.0
    maximum: float = 30.0

    def delay(self, failures: int) -> float:
        """Seconds to wait after the `failures`-th failure, before jitter."""
        return min(self.maximum, self.initial * self.backoff ** (failures - 1))


@dataclass(frozen=True)
class Effect:
    """How a step type is carried out. Durations in seconds.

    `run(step, call)` is an `async def` that returns the step's result. `timeout` bounds one
    attempt. `uninterruptible` moves the safe boundary of a cancellation to the step's end.
    `pool` names the limit that counts these calls across workers (`"model"`).
    `worst_case(step)` and `cost(result)` give micro-dollars: the first is reserved from the run's
    budget before the call, the second settled after it.
    """

    run: Callable[[Any, Call], Coroutine[Any, Any, Any]]
    timeout: float = 60.0
    retry: Retry = field(default_factory=Retry)
    uninterruptible: bool = False
    pool: str | None = None
    worst_case: Callable[[Any], MicroUSD] | None = None
    cost: Callable[[Any], MicroUSD] | None = None


@dataclass(frozen=True, kw_only=True)
class App:
    """An agent and everything a worker needs to run it.

    `resources` is entered once per worker; what it yields reaches every effect as
    `call.resources`. `version` changes when the agent's order of steps changes.
    """

    kind: str
    agent: Callable[[Any], Coroutine[Any, Any, Any]]
    effects: Mapping[type[Step[Any]], Effect] = field(default_factory=dict)
    resources: Callable[[], AbstractAsyncContextManager[Any]] = nullcontext
    version: str = "1"

    def effect(self, step: Step[Any]) -> Effect:
        """The effect for a step. Raises `BadInput` if the app registered none."""
        try:
            return self.effects[type(step)]
        except KeyError:
            raise BadInput(
                f"app {self.kind!r} asks for step {step.kind!r}, but registers no effect for "
                f"{type(step).__name__}; known: {sorted(t.kind for t in self.effects)}"
            ) from None

    def plan(self, payload: JsonValue) -> Plan:
        """Call the agent with a decoded payload. Raises `pydantic.ValidationError` on a bad one."""
        return self.agent(self._codecs[0].validate_python(payload))

    def dump_result(self, value: Any) -> JsonValue:
        """The agent's return value as JSON."""
        result: JsonValue = self._codecs[1].dump_python(value, mode="json")
        return result

    @cached_property
    def _codecs(self) -> tuple[TypeAdapter[Any], TypeAdapter[Any]]:
        """Of the agent's payload and result. Making them costs more than a short run."""
        hints = get_type_hints(self.agent)
        first = next((hint for name, hint in hints.items() if name != "return"), Any)
        return TypeAdapter(first), TypeAdapter(hints.get("return", Any))


def is_wait(step: Step[Any]) -> bool:
    """True for the steps that an engine answers itself: sleeping and waiting for a signal."""
    return isinstance(step, Sleep | WaitForSignal)


def load_app(path: str) -> App:
    """The `App` at `package.module:NAME`. Raises `BadInput` with what was expected."""
    module_name, _, name = path.partition(":")
    try:
        found = getattr(importlib.import_module(module_name), name or "APP")
    except (ImportError, AttributeError, ValueError) as error:
        raise BadInput(
            f"app {path!r}: expected `package.module:NAME` of an App; {error}"
        ) from error
    if not isinstance(found, App):
        raise BadInput(f"app {path!r}: expected an App, found {type(found).__name__}")
    return found
