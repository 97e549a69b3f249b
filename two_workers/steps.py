"""The seam: an agent asks, a driver answers.

An agent is a plain `async def` that awaits only steps:

    async def investigate(question: Question) -> Report:
        plan = await do(AskModel(...))
        hits = await do_all([Search(pattern=p) for p in plan.patterns])   # fan-out
        ...

No event loop runs it. `do` and `do_all` yield a `Batch` up through every `await` to whoever
calls `send`: the driver. The driver performs the steps of the batch (or finds their outcomes in
its journal or history) and sends the outcomes back:

    request = advance(plan, None)
    while not isinstance(request, Done):
        request = advance(plan, perform(request))

That is the whole contract, and the reason why the same agent runs on a table and on Temporal:
the agent imports no engine, does no I/O, and given the same outcomes asks for the same steps.
Batch `n`, position `i` is the step `"n.i"` of its run, on every engine and on every attempt.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Coroutine, Generator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar, cast, get_origin, overload

from pydantic import BaseModel, ConfigDict, Discriminator, JsonValue, TypeAdapter

from two_workers.errors import AgentError, StepFailed

R = TypeVar("R")
T = TypeVar("T")


class Step(BaseModel, Generic[R]):
    """Something that an agent wants done, and what identifies it.

    Subclass with the type of its result: `class AskModel(Step[ModelReply])`. Instances are frozen.
    `kind` defaults to the class name in snake case. Fields named in `volatile` (a timestamp, say)
    do not take part in the step's identity.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: ClassVar[str] = ""
    volatile: ClassVar[frozenset[str]] = frozenset()
    _result_codec: ClassVar[TypeAdapter[Any] | None] = None

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        if cls.__pydantic_generic_metadata__["origin"] is not None:
            return  # Step[ModelReply] itself, not a step type
        if "kind" not in cls.__dict__:
            cls.kind = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        for name, field in cls.model_fields.items():
            if (get_origin(field.annotation) or field.annotation) in (set, frozenset):
                raise TypeError(
                    f"{cls.__name__}.{name}: a set changes its order with the hash seed, "
                    "so it cannot identify a step; use a tuple"
                )


class Sleep(Step[None]):
    """Wait for `seconds` without holding a lease, a slot or a worker."""

    seconds: float


class WaitForSignal(Step[JsonValue]):
    """Wait, without holding a lease or a slot, for the next signal called `name`.

    Its result is the signal's payload. Signals of a name are delivered once each, in order.
    """

    name: str


def result_adapter(step_type: type[Step[Any]]) -> TypeAdapter[Any]:
    """The codec for results of `step_type`, taken from its `Step[...]` base.

    Made once and kept on the class, not in a global cache: a workflow sandbox imports an agent's
    module anew for each run, and the run's copies of its classes must be able to go.
    """
    adapter = step_type.__dict__.get("_result_codec")
    if adapter is None:
        adapter = step_type._result_codec = _result_adapter(step_type)
    return cast("TypeAdapter[Any]", adapter)


def _result_adapter(step_type: type[Step[Any]]) -> TypeAdapter[Any]:
    for base in step_type.__mro__:
        generic = getattr(base, "__pydantic_generic_metadata__", None)
        if generic and generic["origin"] is Step:
            return TypeAdapter(generic["args"][0])
    raise TypeError(f"{step_type.__name__} does not name its result: write Step[SomeResult]")


def fingerprint(step: Step[Any]) -> str:
    """What identifies a step across replays: `kind:digest` over all fields that are not volatile.

    The journal keeps this, never the step: a transcript of 200,000 tokens costs 16 characters.
    """
    fields = step.model_dump(mode="json", exclude=set(step.volatile) or None)
    canonical = _CANONICAL.encode(fields)
    return f"{step.kind}:{hashlib.sha256(canonical.encode()).hexdigest()[:16]}"


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)


# Outcomes: what a driver sends back, and what it records.


class Succeeded(BaseModel):
    """A step's result: typed when it comes from an effect, JSON when it comes from a record."""

    model_config = ConfigDict(frozen=True)
    outcome: Literal["succeeded"] = "succeeded"
    value: Any


class Failed(BaseModel):
    """A step that failed for good. Becomes `StepFailed` inside the agent."""

    model_config = ConfigDict(frozen=True)
    outcome: Literal["failed"] = "failed"
    error: str
    message: str
    attempts: int


Outcome = Annotated[Succeeded | Failed, Discriminator("outcome")]
_OUTCOME: TypeAdapter[Succeeded | Failed] = TypeAdapter(Outcome)


def dump_outcome(step: Step[Any], outcome: Succeeded | Failed) -> JsonValue:
    """An outcome as JSON, for a journal row."""
    if isinstance(outcome, Failed):
        return cast(JsonValue, outcome.model_dump(mode="json"))
    value = result_adapter(type(step)).dump_python(outcome.value, mode="json")
    return {"outcome": "succeeded", "value": value}


def load_outcome(step: Step[Any], recorded: JsonValue) -> Succeeded | Failed:
    """The opposite of `dump_outcome`. Raises `pydantic.ValidationError` if the type changed."""
    outcome = _OUTCOME.validate_python(recorded)
    if isinstance(outcome, Failed):
        return outcome
    return Succeeded(value=result_adapter(type(step)).validate_python(outcome.value))


def as_recorded(step: Step[Any], value: Any) -> tuple[Succeeded, JsonValue]:
    """What an effect returned, through its JSON and back, and that JSON as `dump_outcome` has it.

    The agent sees the former: now what it would see after a takeover. Raises
    `pydantic.ValidationError` if the value is not of the declared type.
    """
    adapter = result_adapter(type(step))
    recorded = adapter.dump_python(adapter.validate_python(value), mode="json")
    seen = Succeeded(value=adapter.validate_python(recorded))
    return seen, {"outcome": "succeeded", "value": recorded}


# What an agent writes.


@dataclass(frozen=True)
class Batch:
    """Steps that the agent wants done together, before it goes on."""

    steps: tuple[Step[Any], ...]


@dataclass(frozen=True)
class Done:
    """The agent returned."""

    value: Any


Plan = Coroutine[Any, Any, Any]
"""An agent that was called and now waits to be advanced."""


class _Ask(Generic[T]):
    """The one awaitable that an agent may await."""

    def __init__(self, steps: Sequence[Step[Any]], *, one: bool, keep_failures: bool) -> None:
        self._steps = tuple(steps)
        self._one = one
        self._keep_failures = keep_failures

    def __await__(self) -> Generator[Batch, Sequence[Succeeded | Failed], T]:
        outcomes = (yield Batch(self._steps)) if self._steps else ()
        values = [
            _value(step, outcome, keep=self._keep_failures)
            for step, outcome in zip(self._steps, outcomes, strict=True)
        ]
        return cast(T, values[0] if self._one else values)


def _value(step: Step[Any], outcome: Succeeded | Failed, *, keep: bool) -> Any:
    if isinstance(outcome, Succeeded):
        return outcome.value
    failure = StepFailed(
        step=step.kind, error=outcome.error, message=outcome.message, attempts=outcome.attempts
    )
    if keep:
        return failure
    raise failure


def do(step: Step[R]) -> _Ask[R]:
    """Have one step done. `await` it for its result; raises `StepFailed` if it failed for good."""
    return _Ask([step], one=True, keep_failures=False)


@overload
def do_all(steps: Sequence[Step[R]]) -> _Ask[list[R]]: ...
@overload
def do_all(
    steps: Sequence[Step[R]], *, keep_failures: Literal[True]
) -> _Ask[list[R | StepFailed]]: ...
def do_all(steps: Sequence[Step[R]], *, keep_failures: bool = False) -> _Ask[Any]:
    """Have independent steps done at the same time, and wait for all of them.

    Raises the first `StepFailed` in the order of `steps`, after all have ended. With
    `keep_failures` a failed step's place holds its `StepFailed` instead.
    """
    return _Ask(steps, one=False, keep_failures=keep_failures)


# What a driver calls.


def advance(plan: Plan, outcomes: Sequence[Succeeded | Failed] | None) -> Batch | Done:
    """Run the agent up to its next request. Send None first, then one outcome per step asked for.

    Raises whatever the agent raises, and `AgentError` if it awaited something else than a step.
    """
    try:
        request = plan.send(outcomes)
    except StopIteration as end:
        return Done(end.value)
    if isinstance(request, Batch):
        return request
    culprit = _innermost_await(plan)
    close(plan)
    raise AgentError(
        f"an agent may await only do() and do_all(); this one awaited {culprit} "
        f"(it yielded {type(request).__name__}); make it a step"
    )


def close(plan: Plan) -> None:
    """End an agent early (cancelled, lease lost). Its `finally` blocks run, without steps.

    Raises `AgentError` if a `finally` asks for a further step: nobody would perform it.
    """
    try:
        plan.close()
    except RuntimeError as error:
        raise AgentError(
            "an agent that is being ended asked for a further step; "
            "a `finally` block or an `except GeneratorExit` may not await do()"
        ) from error


def _innermost_await(plan: Plan) -> str:
    """The qualified name of what the agent waits in, for the error message."""
    name, inner = "an unknown awaitable", getattr(plan, "cr_await", None)
    while inner is not None:
        if hasattr(inner, "cr_code"):
            name = f"{inner.__qualname__}() of {inner.cr_code.co_filename.rpartition('/')[2]}"
        inner = getattr(inner, "cr_await", None)
    return name
