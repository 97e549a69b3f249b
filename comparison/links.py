"""One connection through the proxy: who is at its ends, what is said, and the trap set for it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from comparison.grpcwire import PREFACE, CallWatch
from comparison.pgwire import CommitWatch
from comparison.wire import Request, Watch

Direction = Literal["to_server", "to_client"]
Moment = Literal["asked", "answered"]


@dataclass(eq=False)
class Link:
    """One connection of a worker and its counterpart at the server."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    watch: Watch | None = None
    half_closed: set[Direction] = field(default_factory=set)

    def asked(self, data: bytes) -> list[Request]:
        """Follow what the client says; returns the requests that it makes."""
        if self.watch is None:  # the first bytes say which language is spoken
            self.watch = CallWatch() if data.startswith(PREFACE[:8]) else CommitWatch()
        return self.watch.asked(data)

    def answered(self, data: bytes) -> list[Request]:
        """Follow what the server says; returns the requests that it has dealt with."""
        return [] if self.watch is None else self.watch.answered(data)

    def reset(self) -> None:
        for writer in (self.client, self.server):
            reset(writer)


@dataclass(eq=False)
class Late:
    """A request that met a silence. `passed_ns` is when it was let through to the server, on the
    clock of the ledger; None as long as it was not."""

    request: Request
    passed_ns: int | None = None


@dataclass(frozen=True)
class Said:
    """What one side said at once; before it is passed on, the trap that it sprung must let go."""

    data: bytes
    late: Sequence[Late] = ()
    trap: Trap | None = None


@dataclass
class Trap:
    """Stops one connection at the next request that contains `request`: at `moment`, once.

    `asked`: it does not reach the server yet. `answered`: it is done (PostgreSQL: committed), and
    the word of it does not reach the worker yet. `sprung` is set then, and the connection stands
    still in that direction until `let_go` or `cut`.
    """

    request: bytes
    moment: Moment
    sprung: asyncio.Event = field(default_factory=asyncio.Event)
    _gate: asyncio.Event = field(default_factory=asyncio.Event)
    _link: Link | None = None

    def caught(self, requests: Sequence[Request]) -> bool:
        """True if what it waits for is among the requests; one that was refused is not done."""
        return any(
            self.request in request.name and request.outcome in (None, "accepted")
            for request in requests
        )

    def spring(self, link: Link) -> None:
        self._link = link
        self.sprung.set()

    async def passed(self) -> None:
        """Wait until what was stopped may go on."""
        await self._gate.wait()

    def let_go(self) -> None:
        """Let it go on. Safe to repeat."""
        self._gate.set()

    def cut(self) -> None:
        """End the connection there with a RST."""
        if self._link is not None:
            self._link.reset()
        self._gate.set()


def reset(writer: asyncio.StreamWriter) -> None:
    """Close with a RST instead of a FIN."""
    connection: socket.socket | None = writer.get_extra_info("socket")
    if connection is not None:
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
