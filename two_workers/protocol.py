"""What any engine promises. `tests/contract` is the specification in executable form.

A client (`Engine`) and a worker (`Worker`) are separate objects and usually separate processes.
An `EnginePlugin` makes both; plugins are found by name through the entry-point group
`two_workers.engines`, so a third engine is a package, not an edit.

A scheduler must answer four questions, and a `RunView` answers them for one run:

1. Which runs are ready?                      `state` is `pending`
2. Which worker owns each run?                `owner`, under which `fence`
3. When does that ownership end?              `owned_until`
4. How does an abandoned run come back?       `recovery`, in the engine's own words
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from two_workers.apps import App, Fence
from two_workers.money import MicroUSD


class RunState(StrEnum):
    """The states of a run. An engine that does not know one never reports it."""

    PENDING = "pending"  # ready, waits for a worker
    SCHEDULED = "scheduled"  # ready later: backing off, or asleep
    WAITING = "waiting"  # parked until a signal
    SUSPENDED = "suspended"  # taken out by an operator
    RUNNING = "running"  # owned by a worker
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """True when the run has ended; a final state never changes."""
        return self in (RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED)


class Run(BaseModel):
    """A request to run an agent. Starting the same `Run` twice is one run.

    Lower `priority` goes first (1 to 5). `budget` is the most the run may cost, in micro-dollars.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    run_id: str = Field(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9._:-]+$")
    kind: str = Field(min_length=1, max_length=100)
    payload: JsonValue = None
    tenant: str = Field(default="default", min_length=1, max_length=64)
    priority: int = Field(default=3, ge=1, le=5)
    budget: MicroUSD | None = Field(default=None, ge=0, le=10**15)


class RunView(BaseModel):
    """One run as its engine sees it now. `native` holds what only this engine can say."""

    model_config = ConfigDict(frozen=True)
    run_id: str
    kind: str
    tenant: str
    state: RunState
    created_at: datetime
    closed_at: datetime | None = None
    cancel_requested: bool = False
    failure: str | None = None
    cost: MicroUSD = 0
    budget: MicroUSD | None = None
    owner: str | None = None
    fence: Fence | None = None
    owned_until: datetime | None = None
    recovery: str | None = None
    native: Mapping[str, JsonValue] = Field(default_factory=dict)


class StepRecord(BaseModel):
    """One recorded step: what a replay will not execute again."""

    model_config = ConfigDict(frozen=True)
    key: str
    kind: str
    outcome: str  # "succeeded" | "failed"
    attempt: int
    worker: str | None
    recorded_at: datetime


Count = Annotated[int, Field(ge=0, le=2**31 - 1)]


class Limits(BaseModel):
    """Backpressure. None means no limit. They change while runs run, and never block recovery.

    `max_active_per_tenant` is the default for every tenant; `tenants` overrides it by name.
    `pools` limits calls in flight across all workers, by pool name (`{"model": 8}`).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    max_active: Count | None = None
    max_active_per_tenant: Count | None = None
    tenants: Mapping[str, Count] = Field(default_factory=dict)
    pools: Mapping[str, Count] = Field(default_factory=dict)


@runtime_checkable
class Engine(Protocol):
    """A client of an engine: seven methods for runs, two for limits."""

    @property
    def name(self) -> str: ...

    async def start(self, run: Run) -> RunView:
        """Start a run, durably. Idempotent: the same run again returns it as it is.

        Raises `RunConflict` if the id is taken by other content.
        """
        ...

    async def get(self, run_id: str) -> RunView:
        """One run. Raises `RunNotFound`."""
        ...

    async def list_runs(
        self,
        *,
        state: RunState | None = None,
        tenant: str | None = None,
        kind: str | None = None,
        limit: int = 100,
    ) -> Sequence[RunView]:
        """Runs, newest first."""
        ...

    async def signal(self, run_id: str, name: str, payload: JsonValue, *, signal_id: str) -> None:
        """Deliver a signal once per `signal_id`, in order. Raises `RunNotFound`, `RunClosed`."""
        ...

    async def cancel(self, run_id: str, *, reason: str = "") -> RunView:
        """Request cancellation, durably. Returns once the request cannot be lost.

        A run nobody owns ends `cancelled` at once; an owned one at its owner's next safe
        boundary, or when its owner is found dead. A final run is unchanged. Raises `RunNotFound`.
        """
        ...

    async def result(self, run_id: str, *, timeout: float) -> JsonValue:
        """Wait up to `timeout` seconds for the end and return the agent's result.

        Raises `RunFailed`, `RunCancelled`, `RunNotFound`, builtin `TimeoutError`.
        """
        ...

    async def steps(self, run_id: str) -> Sequence[StepRecord]:
        """The recorded steps in the order of their keys. Raises `RunNotFound`."""
        ...

    async def limits(self) -> Limits:
        """The limits in force."""
        ...

    async def set_limits(self, limits: Limits) -> None:
        """Replace the limits, for all workers, from now on."""
        ...


@runtime_checkable
class Worker(Protocol):
    """A process's part in carrying out runs."""

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set, then take nothing new, hand over or finish, and return.

        Raises `EngineUnavailable` if the engine cannot be reached at the start; afterwards it
        reconnects by itself.
        """
        ...


class EnginePlugin(Protocol):
    """Makes the parts of one engine. `settings` is the engine's own frozen pydantic model."""

    @property
    def name(self) -> str: ...

    def settings(self, env: Mapping[str, str]) -> Any:
        """Read and validate settings from environment variables. Raises `BadInput`."""
        ...

    async def prepare(self, settings: Any) -> None:
        """Create or migrate what the server must hold. Safe to repeat and to race."""
        ...

    def connect(self, settings: Any) -> AbstractAsyncContextManager[Engine]:
        """A client. Raises `EngineUnavailable` on entering."""
        ...

    def worker(self, settings: Any, apps: Sequence[App], *, worker_id: str) -> Worker:
        """A worker for these apps. `worker_id` is unique for each start of a process."""
        ...

    def is_configured(self, env: Mapping[str, str]) -> bool:
        """True when `env` already names a server, so that none needs to be started."""
        ...

    def embedded(
        self, directory: Path, env: Mapping[str, str]
    ) -> AbstractAsyncContextManager[Mapping[str, str]]:
        """Start this engine's server under `directory`; stop it on leaving.

        Yields the environment variables that point clients and workers to it.
        """
        ...
