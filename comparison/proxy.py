"""A TCP proxy between workers and their engine's server, whose faults the harness switches.

The world stays out of it: a worker that is cut off here still reaches the model, which is exactly
the zombie that a comparison wants to see. One proxy a worker makes the worker the victim; one
proxy for all makes the server the victim.

    silence    connections stay open and say nothing; what was on its way arrives after `heal`, as
               retransmitted packets do (a new connection is accepted and silent too)
    reset      every connection ends with a RST
    half_close one side is told that the other will say no more, and can still talk
    delay      everything arrives later
    trap       one request is stopped on its way to the server, or its answer on the way back;
               then it is let go, or the connection ends there

`withheld` and `Trap.sprung` are the confirmation that a fault has met traffic. What a request is,
PostgreSQL's and gRPC's wires say (`pgwire`, `grpcwire`).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

from comparison.grpcwire import PREFACE, CallWatch
from comparison.pgwire import CommitWatch

Direction = Literal["to_server", "to_client"]
BOTH: tuple[Direction, ...] = ("to_server", "to_client")
Moment = Literal["asked", "answered"]
_CHUNK = 65_536


@dataclass(eq=False)
class _Link:
    """One connection of a worker and its counterpart at the server."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    watch: CommitWatch | CallWatch | None = None
    half_closed: set[Direction] = field(default_factory=set)

    def asked(self, data: bytes, request: bytes | None) -> bool:
        """Follow what the client says; True if it makes the request that is looked for."""
        if self.watch is None:  # the first bytes say which language is spoken
            self.watch = CallWatch() if data.startswith(PREFACE[:8]) else CommitWatch()
        return self.watch.asked(data, request)

    def answered(self, data: bytes) -> bytes | None:
        """Follow what the server says; returns the request that it says has been done."""
        return None if self.watch is None else self.watch.answered(data)

    def reset(self) -> None:
        for writer in (self.client, self.server):
            _reset(writer)


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
    _link: _Link | None = None

    def spring(self, link: _Link) -> None:
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


class Proxy:
    """Use `Proxy.before`. All methods act at once and belong to the event loop that opened it."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._open: dict[Direction, asyncio.Event] = {d: asyncio.Event() for d in BOTH}
        self._links: set[_Link] = set()
        self._trap: Trap | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        self.delay = 0.0
        """Seconds by which everything is late."""
        self.withheld: dict[Direction, int] = dict.fromkeys(BOTH, 0)
        """Bytes that met a silence since it began."""
        self.heal()

    @classmethod
    @asynccontextmanager
    async def before(cls, host: str, port: int) -> AsyncIterator[Proxy]:
        """A proxy before a server, listening on 127.0.0.1 at `port` until the block is left."""
        proxy = cls(host, port)
        listener = await asyncio.start_server(proxy._accept, "127.0.0.1", 0)
        proxy.port = listener.sockets[0].getsockname()[1]
        try:
            yield proxy
        finally:
            listener.close()
            proxy.heal()
            proxy.reset()
            for task in proxy._tasks:
                task.cancel()
            await asyncio.gather(*proxy._tasks, return_exceptions=True)

    @property
    def connections(self) -> int:
        """Connections that are open now."""
        return len(self._links)

    def silence(self, *directions: Direction) -> None:
        """Let nothing through in `directions`; in none at all when none is given."""
        for direction in directions or BOTH:
            self.withheld[direction] = 0
            self._open[direction].clear()

    def heal(self) -> None:
        """Let everything through, without delay; a trap is disarmed."""
        for gate in self._open.values():
            gate.set()
        self.delay = 0.0
        if self._trap is not None:
            self._trap.let_go()
        self._trap = None

    def reset(self) -> int:
        """End every connection with a RST; returns how many there were."""
        links = list(self._links)
        for link in links:
            link.reset()
        return len(links)

    def half_close(self, direction: Direction) -> int:
        """Send a FIN towards one side on every connection; returns how many there were."""
        links = list(self._links)
        for link in links:
            link.half_closed.add(direction)
            writer = link.server if direction == "to_server" else link.client
            with contextlib.suppress(OSError):
                writer.write_eof()
        return len(links)

    def trap(self, request: bytes, moment: Moment) -> Trap:
        """Set a trap for the next such request, on whichever connection it comes."""
        self._trap = Trap(request, moment)
        return self._trap

    async def _accept(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        try:
            server_reader, server = await asyncio.open_connection(*self._target)
        except OSError:
            _reset(client)  # nobody listens there: what a refused connection looks like
            return
        link = _Link(client, server)
        self._links.add(link)
        pumps = [
            asyncio.create_task(self._pump(link, reader, server, "to_server")),
            asyncio.create_task(self._pump(link, server_reader, client, "to_client")),
        ]
        self._tasks.update(pumps)
        try:
            await asyncio.gather(*pumps)
        except (ConnectionError, OSError):
            link.reset()
        except asyncio.CancelledError:
            link.reset()  # the pumps were cancelled: the proxy is being closed
        finally:
            self._links.discard(link)
            self._tasks.difference_update(pumps)
            for task in pumps:
                task.cancel()
            for writer in (client, server):
                writer.close()

    async def _pump(
        self,
        link: _Link,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        direction: Direction,
    ) -> None:
        while data := await source.read(_CHUNK):
            trap = self._sprung(link, data, direction)
            if trap is not None:
                await trap.passed()
            gate = self._open[direction]
            if not gate.is_set():
                self.withheld[direction] += len(data)
            if self.delay:
                await asyncio.sleep(self.delay)
            await gate.wait()
            if direction in link.half_closed:
                continue  # a FIN was sent: whatever comes after it has no way to go
            sink.write(data)
            await sink.drain()
        with contextlib.suppress(OSError):
            sink.write_eof()

    def _sprung(self, link: _Link, data: bytes, direction: Direction) -> Trap | None:
        """Follow the conversation; the trap that these bytes have sprung, if they have."""
        trap = self._trap if self._trap is not None and not self._trap.sprung.is_set() else None
        request = None if trap is None else trap.request
        if direction == "to_server":
            found = link.asked(data, request) and trap is not None and trap.moment == "asked"
        else:
            done = link.answered(data)
            found = trap is not None and trap.moment == "answered" and done == request
        if not found or trap is None:
            return None
        trap.spring(link)
        return trap


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close with a RST instead of a FIN."""
    connection: socket.socket | None = writer.get_extra_info("socket")
    if connection is not None:
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
