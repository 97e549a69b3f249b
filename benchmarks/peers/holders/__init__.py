"""How each contender holds a step. Each module has a `Holder` called HOLDER.

A holder works in processes of its own, started by `benchmarks.ownership.worker`, until they are
killed. Its settings are named as its library names them and handed over as they are; without any
it has the library's defaults. Where a library has a documented setting that makes takeover faster,
the rows use it, and say so.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from benchmarks.ownership.holding import Hold
from benchmarks.peers import import_contender

Settings = Mapping[str, Any]

WORKER = "BENCH_WORKER"
"""The environment variable with a worker's name; one that is started again has the same."""


class Client(ABC):
    """Starts, cancels and looks at runs of one step each."""

    @abstractmethod
    async def start(self, step: Hold) -> str:
        """Start a run and return its id, the one that its step writes into the diary."""

    @abstractmethod
    async def cancel(self, run: str) -> None:
        """Ask for the end of a run whose step is running."""

    @abstractmethod
    async def outcome(self, run: str) -> str | None:
        """None while the run has not succeeded; then its result, "" where none is kept."""

    async def recover(self, run: str) -> None:  # noqa: B027 # most have nothing to do
        """What an operator must do before another worker takes an orphan over: mostly nothing."""


@dataclass(frozen=True)
class Holder:
    """A contender of the rows about ownership.

    `connect` prepares a fresh database or a server for it. `work` is a worker for `concurrency`
    runs at a time, and does not return.
    """

    connect: Callable[[str, Settings], AbstractAsyncContextManager[Client]]
    work: Callable[[str, Settings, int], Awaitable[None]]


HOLDERS = {
    "hand_rolled": "benchmarks.peers.holders.hand_rolled_holder",
    "temporal": "benchmarks.peers.holders.temporal_holder",
    "pgqueuer": "benchmarks.peers.holders.pgqueuer_holder",
    "procrastinate": "benchmarks.peers.holders.procrastinate_holder",
    "absurd": "benchmarks.peers.holders.absurd_holder",
    "dbos": "benchmarks.peers.holders.dbos_holder",
}


def load_holder(name: str) -> Holder:
    """Import a holder. Raises `BadInput` when its library is not installed."""
    holder: Holder = import_contender(name, HOLDERS[name]).HOLDER
    return holder
