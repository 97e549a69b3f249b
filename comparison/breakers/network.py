"""Between one worker and its server: silence, mute, deaf, reset, half close, cut."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from comparison.breakers.base import CONFIRM
from comparison.links import Direction, Trap
from comparison.proxy import BOTH, Proxy


@dataclass
class Silence:
    """Silent in some directions. Confirmed by bytes that met the silence.

    A worker that cannot be heard (silent in both directions, or *mute*) loses its work to another
    one. A worker that is *deaf* (silent to the client) is the nastier case: the server does what
    it is told, renews and records, and the worker does not learn so.

    The bytes may be the server's in a full silence: a worker that waits for the answer to its
    heartbeat may keep its next word to itself until it has it (Temporal's does).
    """

    proxy: Proxy
    directions: tuple[Direction, ...] = BOTH

    async def strike(self) -> None:
        self.proxy.silence(*self.directions)

    async def problem(self) -> str | None:
        try:
            async with asyncio.timeout(CONFIRM):
                while not any(self.proxy.withheld[way] for way in self.directions):
                    await asyncio.sleep(0.02)
        except TimeoutError:
            return f"nothing was on its way {' or '.join(self.directions)} during the silence"
        return None

    async def heal(self) -> None:
        self.proxy.heal()


@dataclass
class Reset:
    """A RST on every connection. Confirmed by their number."""

    proxy: Proxy
    ended: int = 0

    async def strike(self) -> None:
        self.ended = self.proxy.reset()

    async def problem(self) -> str | None:
        return None if self.ended else "there was no connection to reset"

    async def heal(self) -> None:
        """Nothing to undo: the worker connects again."""


@dataclass
class HalfClose:
    """A FIN towards the server on every connection. Confirmed by their number."""

    proxy: Proxy
    closed: int = 0

    async def strike(self) -> None:
        self.closed = self.proxy.half_close("to_server")

    async def problem(self) -> str | None:
        return None if self.closed else "there was no connection to close"

    async def heal(self) -> None:
        """Nothing to undo: the worker connects again."""


@dataclass
class CutAfterRecord:
    """The next record of a step is accepted, then its connection is cut: did it work or not?

    On PostgreSQL this is the cut after COMMIT and before its reply. Confirmed by the proxy, which
    has seen the server's word that the transaction is over (Temporal: that the completion was
    accepted), and kept it.
    """

    proxy: Proxy
    record: bytes
    trap: Trap | None = field(default=None, init=False)

    async def strike(self) -> None:
        self.trap = self.proxy.trap(self.record, "answered")

    async def problem(self) -> str | None:
        assert self.trap is not None
        try:
            async with asyncio.timeout(CONFIRM):
                await self.trap.sprung.wait()
        except TimeoutError:
            return f"no answer to {self.record.decode()!r} was seen"
        self.trap.cut()
        return None

    async def heal(self) -> None:
        self.proxy.heal()
