"""The bridge: an ordinary asyncio agent, with `gather` and `TaskGroup`, as a plan of batches.

    @plan_of
    async def review(ctx: Context, folder: Folder) -> Verdict:
        notes = await asyncio.gather(*(ctx.step(Read(path=p)) for p in folder.paths))
        ...

The agent runs on a private event loop that has no clock, no I/O and no threads: all that it can
wait for is a step. When nothing in the loop is ready, the steps that were asked for, in the order
of asking, become one `Batch`; the driver performs it, and every outcome resolves the future of
its step. What runs when is therefore decided by the agent's code and by recorded outcomes alone,
on both engines and on every replay. Even a set of tasks has a fixed order here, since tasks and
futures hash by their number and not by their address.

The price: a branch that awaits a step goes on when the slowest step of its batch has ended. A
timer, a thread, a socket or a sleep other than `asyncio.sleep(0)` is refused: make it a step
(`Sleep` is one). `asyncio.as_completed` must be given tasks, because it puts coroutines into a
set, by address. (Temporal's sandbox warns an agent that calls it or `asyncio.wait` directly; the
order of sets that it warns of is fixed here.)

Use `plan_of` as a decorator. A worker finds an agent again by its module and name, so what stands
under that name must be the plan, not the function inside it.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import sys
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

from two_workers.errors import AgentError, StepFailed
from two_workers.steps import Step, do_all

P = TypeVar("P")
R = TypeVar("R")

logger = logging.getLogger(__name__)


class Context:
    """How an agent on the bridge asks for steps. Any number of its tasks may ask at once."""

    def __init__(self, loop: _StepLoop) -> None:
        self._loop = loop

    async def step(self, step: Step[R]) -> R:
        """Have one step done. Raises `StepFailed` if it failed for good."""
        return cast(R, await self._loop.ask(step))


def plan_of(
    agent: Callable[[Context, P], Coroutine[Any, Any, R]],
) -> Callable[[P], Coroutine[Any, Any, R]]:
    """Turn an asyncio agent `(ctx, payload)` into one that an `App` takes: a plan of batches.

    It raises what the agent raises, and `AgentError` if the agent awaits what no step will bring.
    """

    @wraps(agent)
    async def plan(payload: P) -> R:
        loop = _StepLoop()  # type: ignore[abstract]  # what is missing is refused, see below
        main = loop.create_task(agent(Context(loop), payload))
        try:
            loop.run()
            while not main.done():
                asked = loop.take_asked()
                outcomes = await do_all([step for step, _ in asked], keep_failures=True)
                for (_, future), outcome in zip(asked, outcomes, strict=True):
                    _resolve(future, outcome)
                loop.run()
            if main.cancelled():  # not by the driver: that closes the plan instead
                raise AgentError("the agent cancelled its own main task")
            return cast(R, main.result())
        except GeneratorExit:  # ended early; as in any coroutine, what a `finally` raises comes out
            loop.close()
            if main.done() and not main.cancelled():
                main.result()
            raise
        finally:
            loop.close()

    # `App` reads the payload's type from the first parameter, which is no longer the context.
    context = next(iter(inspect.signature(agent).parameters))
    plan.__annotations__ = {k: v for k, v in agent.__annotations__.items() if k != context}
    return plan


def _resolve(future: asyncio.Future[Any], outcome: Any) -> None:
    if future.done():  # the task that asked was cancelled by a sibling's failure
        return
    if isinstance(outcome, StepFailed):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)


class _Numbered:
    """Hash by number of creation, so that a set of these has the same order in every process."""

    number: int

    def __hash__(self) -> int:
        return self.number


class _Future(_Numbered, asyncio.Future[Any]):
    def __init__(self, loop: _StepLoop) -> None:
        self.number = loop.next_number()
        super().__init__(loop=loop)


class _Task(_Numbered, asyncio.Task[Any]):
    def __init__(self, coro: Coroutine[Any, Any, Any], loop: _StepLoop, **options: Any) -> None:
        self.number = loop.next_number()  # before the parent, which puts the task into sets
        super().__init__(coro, loop=loop, **options)


class _StepLoop(asyncio.AbstractEventLoop):
    """An asyncio event loop that only runs what is ready, and only steps make things ready."""

    def __init__(self) -> None:
        self._ready: deque[asyncio.Handle] = deque()
        self._asked: list[tuple[Step[Any], asyncio.Future[Any]]] = []
        self._tasks: list[_Task] = []
        self._numbers = 0
        self._thread = threading.get_ident()
        self._closing = False

    # What the plan calls.

    def ask(self, step: Step[Any]) -> asyncio.Future[Any]:
        """A future for the outcome of `step`."""
        if self._closing:
            raise AgentError("an agent that is being ended may not ask for a further step")
        future = self.create_future()
        self._asked.append((step, future))
        return future

    def take_asked(self) -> list[tuple[Step[Any], asyncio.Future[Any]]]:
        """The steps to perform now. Raises `AgentError` if nothing could ever go on."""
        asked = [(step, future) for step, future in self._asked if not future.done()]
        self._asked.clear()
        if not asked:
            raise AgentError(
                "the agent waits for something that is not a step (a queue, an event, a future of "
                "another loop?), and no step is left that could bring it"
            )
        return asked

    def run(self) -> None:
        """Run until nothing is ready. Works inside another running loop, which is put back."""
        self._thread = threading.get_ident()
        outer, hooks = asyncio._get_running_loop(), sys.get_asyncgen_hooks()
        asyncio._set_running_loop(self)
        # Else the outer loop would close this agent's async generators, at a time of its own.
        sys.set_asyncgen_hooks(None, None)
        try:
            while self._ready:
                handle = self._ready.popleft()
                if not handle.cancelled():
                    handle._run()
        finally:
            sys.set_asyncgen_hooks(*hooks)
            asyncio._set_running_loop(outer)
            asyncio.set_event_loop(outer)  # a framework may have set this one

    def close(self) -> None:
        """Cancel what still runs. `finally` blocks run, but may not ask for steps."""
        self._closing = True
        for task in self._tasks:
            task.cancel()
        self.run()

    def next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    # What asyncio calls.

    def call_soon(  # type: ignore[override]  # the stubs tie the types of callback and args
        self, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_soon_threadsafe(  # type: ignore[override]  # as above
        self, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.Handle:
        """Some frameworks use this one within the agent's own thread, where it is harmless."""
        if threading.get_ident() != self._thread:
            raise AgentError("the agent is called from a thread of its own; make that a step")
        return self.call_soon(callback, *args, context=context)

    def create_future(self) -> asyncio.Future[Any]:
        return _Future(self)

    def create_task(  # type: ignore[override]  # options differ between Python versions
        self, coro: Coroutine[Any, Any, Any], **options: Any
    ) -> asyncio.Task[Any]:
        task = _Task(coro, self, **options)
        self._tasks.append(task)
        return task

    def call_exception_handler(self, context: Mapping[str, Any]) -> None:
        logger.warning("%s", context["message"], exc_info=context.get("exception"))

    def get_debug(self) -> bool:
        return False

    def get_task_factory(self) -> None:
        return None

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return self._closing


def _refused(name: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AgentError(
            f"the agent needs a clock, a thread or I/O (it called {name} of its event loop); "
            "an agent may wait only for steps: make it a step, such as Sleep"
        )

    return refuse


for _name in vars(asyncio.AbstractEventLoop).keys() - vars(_StepLoop).keys():
    if not _name.startswith("__"):
        setattr(_StepLoop, _name, _refused(_name))
