"""What a scenario can see of a run. `watch_table` and `watch_history` do it for each engine.

An observer looks again and again and keeps what has changed; nothing is derived from what the
scenario did. `stale_commit` sends what an owner of the past would send: the engine's own statement
with the old generation, or Temporal's own call with the token of the old attempt.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import datetime, timedelta
from typing import Any, Protocol, Self

from pydantic import JsonValue

from comparison.mapping.recording import Kind, Moment
from comparison.mapping.tour.steps import Visit

LOOK = 0.02
"""Seconds between two looks. What changes twice in between is seen once, as in any snapshot."""


class Observer(Protocol):
    """Watches the runs of one scenario on one engine."""

    def watch(self, run_id: str) -> None:
        """Look at this run from now on."""
        ...

    def held(self, run_id: str) -> AbstractAsyncContextManager[None]:
        """Let the claims of two workers meet at this run, as far as the engine lets us.

        On the table: its row stays locked until two workers have looked for work. A claim that
        skips locked rows passes by; one that does not waits beside its rival. On Temporal there is
        nothing to hold: the server hands out the task.
        """
        ...

    async def claims(self, run_id: str) -> int:
        """How often the run (on Temporal: its steps) was given to a worker."""
        ...

    def renewals(self, run_id: str) -> int:
        """How many heartbeats of the run's present owner were seen."""
        ...

    def mismatches(self, run_id: str) -> bool:
        """True once a worker's code was seen not to fit the run."""
        ...

    async def moments(self, began: float) -> list[Moment]:
        """Everything that was seen, in seconds since `began` (a `time.time()`)."""
        ...

    async def stale_commit(self, call: Mapping[str, Any], step: Visit) -> str:
        """Commit `step`, begun as `call`, as its owner then would. Returns what came back."""
        ...


class Watching(ABC):
    """Looks at some runs for as long as `looking` is entered."""

    def __init__(self) -> None:
        self._runs: list[str] = []
        self._seen: list[Moment] = []

    def watch(self, run_id: str) -> None:
        """Look at this run from now on."""
        self._runs.append(run_id)

    @asynccontextmanager
    async def looking(self) -> AsyncIterator[Self]:
        """Look while the body runs."""
        task = asyncio.create_task(self._look())
        try:
            yield self
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    @abstractmethod
    async def _look(self) -> None:
        """Look until cancelled."""


def moment(kind: Kind, at: float, run: str, what: str, data: Mapping[str, Any] = {}) -> Moment:
    """A moment with values that JSON can hold; times become seconds since the epoch."""
    return Moment(t=at, kind=kind, run=run, what=what, data={k: _plain(v) for k, v in data.items()})


def _plain(value: Any) -> JsonValue:
    match value:
        case datetime():
            return value.timestamp()
        case timedelta():
            return value.total_seconds()
        case None | bool() | int() | float() | str():
            return value
        case dict():
            return {str(k): _plain(v) for k, v in value.items()}
        case list() | tuple():
            return [_plain(v) for v in value]
        case _:
            return str(value)


def since(began: float, moments: list[Moment]) -> list[Moment]:
    """The moments in the order of time, in seconds since `began`."""
    shifted = [
        m.model_copy(
            update={
                "t": round(m.t - began, 3),
                "data": {
                    key: round(value - began, 3)
                    if key.endswith("_at") and isinstance(value, float)
                    else value
                    for key, value in m.data.items()
                },
            }
        )
        for m in moments
    ]
    return sorted(shifted, key=lambda m: m.t)
