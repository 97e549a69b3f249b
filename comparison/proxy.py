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
PostgreSQL's and gRPC's wires say (`pgwire`, `grpcwire`). Requests that a silence withheld are
followed to the server's word on them (`late`): were they accepted, when they came at last?
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager

from comparison.links import Direction, Late, Link, Moment, Said, Trap, reset

BOTH: tuple[Direction, ...] = ("to_server", "to_client")
_CHUNK = 65_536
_Backlog = asyncio.Queue[Said | ConnectionError | None]
_MOST = 1_000  # pieces that may wait in a silence; what comes after them waits with the sender


class Proxy:
    """Use `Proxy.before`. All methods act at once and belong to the event loop that opened it."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._open: dict[Direction, asyncio.Event] = {d: asyncio.Event() for d in BOTH}
        self._links: set[Link] = set()
        self._trap: Trap | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        self.delay = 0.0
        """Seconds by which everything is late."""
        self.withheld: dict[Direction, int] = dict.fromkeys(BOTH, 0)
        """Bytes that met a silence since it began."""
        self.late: list[Late] = []
        """Requests that met a silence, ever."""
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
            reset(client)  # nobody listens there: what a refused connection looks like
            return
        link = Link(client, server)
        self._links.add(link)
        pumps = [
            asyncio.create_task(pump)
            for pump in (
                *self._passing(link, reader, server, "to_server"),
                *self._passing(link, server_reader, client, "to_client"),
            )
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

    def _passing(
        self,
        link: Link,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        direction: Direction,
    ) -> tuple[Coroutine[None, None, None], Coroutine[None, None, None]]:
        """One direction of a connection: what is heard, and what is passed on of it."""
        said: _Backlog = asyncio.Queue(_MOST)
        return self._hear(link, source, direction, said), self._pass_on(link, sink, direction, said)

    async def _hear(
        self, link: Link, source: asyncio.StreamReader, direction: Direction, said: _Backlog
    ) -> None:
        """Listen on, in a silence too: what is said in it must be known to be late."""
        try:
            while data := await source.read(_CHUNK):
                await said.put(self._heard(link, data, direction))
        except ConnectionError as error:
            await said.put(error)  # in its turn: what was said before it is on its way
        else:
            await said.put(None)

    async def _pass_on(
        self, link: Link, sink: asyncio.StreamWriter, direction: Direction, backlog: _Backlog
    ) -> None:
        while (said := await backlog.get()) is not None:
            trap = None if isinstance(said, ConnectionError) else said.trap
            if trap is not None:
                await trap.passed()
            if self.delay:
                await asyncio.sleep(self.delay)
            await self._open[direction].wait()
            if isinstance(said, ConnectionError):
                raise said
            if direction in link.half_closed:
                continue  # a FIN was sent: whatever comes after it has no way to go
            for late in said.late:
                late.passed_ns = time.monotonic_ns()
            sink.write(said.data)
            await sink.drain()
        await self._open[direction].wait()
        with contextlib.suppress(OSError):
            sink.write_eof()

    def _heard(self, link: Link, data: bytes, direction: Direction) -> Said:
        """Follow the conversation: what meets a silence, and what springs the trap."""
        silent = not self._open[direction].is_set()
        if silent:
            self.withheld[direction] += len(data)
        late: list[Late] = []
        if direction == "to_server":
            requests, moment = link.asked(data), "asked"
            late = [Late(request) for request in requests if silent]
            self.late += late
        else:
            requests, moment = link.answered(data), "answered"
        trap = self._trap
        armed = trap is not None and trap.moment == moment and not trap.sprung.is_set()
        if trap is None or not armed or not trap.caught(requests):
            return Said(data, late)
        trap.spring(link)
        return Said(data, late, trap)
