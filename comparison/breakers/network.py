"""Between one worker and its server: mute, deaf, reset, half close, cut after COMMIT."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from comparison.breakers.base import CONFIRM
from comparison.plan import FaultKind
from comparison.proxy import Cut, Direction, Proxy


@dataclass
class OneWay:
    """Silent in one direction. Confirmed by bytes that met the silence.

    A worker that is *mute* (silent to the server) loses its work to another one. A worker that is
    *deaf* (silent to the client) is the nastier case: the server does what it is told, renews and
    records, and the worker does not learn so.
    """

    proxy: Proxy
    direction: Direction

    @property
    def kind(self) -> FaultKind:
        return "mute" if self.direction == "to_server" else "deaf"

    async def strike(self) -> None:
        self.proxy.silence(self.direction)

    async def problem(self) -> str | None:
        try:
            async with asyncio.timeout(CONFIRM):
                while not self.proxy.withheld[self.direction]:
                    await asyncio.sleep(0.02)
        except TimeoutError:
            return f"nothing was on its way {self.direction} during the silence"
        return None

    async def heal(self) -> None:
        self.proxy.heal()


@dataclass
class Reset:
    """A RST on every connection. Confirmed by their number."""

    proxy: Proxy
    kind: FaultKind = "reset"
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
    kind: FaultKind = "half close"
    closed: int = 0

    async def strike(self) -> None:
        self.closed = self.proxy.half_close("to_server")

    async def problem(self) -> str | None:
        return None if self.closed else "there was no connection to close"

    async def heal(self) -> None:
        """Nothing to undo: the worker connects again."""


@dataclass
class CutAfterCommit:
    """The next record of a step is committed, then its connection is cut: did it work or not?

    Confirmed by the proxy, which has seen the server's word that the transaction is over.
    """

    proxy: Proxy
    statement: str = "INSERT INTO journal"
    kind: FaultKind = "cut"
    cut: Cut | None = field(default=None, init=False)

    async def strike(self) -> None:
        self.cut = self.proxy.cut_after_commit(self.statement)

    async def problem(self) -> str | None:
        assert self.cut is not None
        try:
            async with asyncio.timeout(CONFIRM):
                await self.cut.done.wait()
        except TimeoutError:
            return f"no commit of {self.statement!r} was seen"
        return None

    async def heal(self) -> None:
        self.proxy.heal()
