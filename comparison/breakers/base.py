"""What a breaker does, and what it is made for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from comparison.cluster import Process
from comparison.engines import REQUESTS
from comparison.ledger import Begin
from comparison.meters import Meter
from comparison.proxy import Proxy
from comparison.workers import Workers
from comparison.world.client import WorldClient

CONFIRM = 20.0
"""Seconds in which a fault must be confirmed. It is confirmed at once, or by what it prevents."""


class Skipped(Exception):
    """The fault cannot be brought here; the message says why, and belongs into the report."""


class Server(Protocol):
    """A server that can crash and come back on the same data and port."""

    async def crash(self) -> None: ...
    async def start(self) -> None: ...


class Breaker(Protocol):
    """One fault, made for its victim. Raises `Skipped` when it is struck where it cannot be."""

    async def strike(self) -> None:
        """Do it. The victim stands at its crash point, and goes on from there afterwards."""
        ...

    async def problem(self) -> str | None:
        """Once the victim goes on: None when the fault has met it, or why it did not."""
        ...

    async def heal(self) -> None:
        """Undo it. Safe to repeat, and after a strike that failed."""
        ...


@dataclass(frozen=True)
class Scene:
    """What is up around the workers. `server` is None when it is not the harness's own; `meter`
    reads what the server counts, whoever's it is."""

    engine: str
    env: Mapping[str, str]
    server: Server | None
    meter: Meter
    world: WorldClient
    workers: Workers

    def request(self, name: str) -> bytes:
        """How a `record` or a `heartbeat` is recognised on its way to this engine's server."""
        return REQUESTS[self.engine][name]


@dataclass(frozen=True)
class Aim:
    """A worker at a crash point, and the call that it is in, or was in a moment ago."""

    scene: Scene
    worker: str
    victim: Process
    held: Begin | None = None

    @property
    def proxy(self) -> Proxy:
        """What stands between the victim and its server."""
        proxy = self.scene.workers.proxy_of(self.worker)
        assert proxy is not None  # no such fault is planned where there is none
        return proxy
