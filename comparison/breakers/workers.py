"""Inside one worker, or from its supervisor: a stalled event loop, a drain, an idle pause."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass

from comparison.breakers.base import CONFIRM
from comparison.cluster import Process
from comparison.plan import FaultKind

DRAIN = 30.0
"""Seconds that a worker may take to finish or hand over what it has."""


@dataclass
class Stall:
    """The worker's event loop stands still: the commonest pause of a Python process.

    The worker must run `comparison.stalling:APP`; its environment says for how long. Its other
    threads live on, and a heartbeat from one of them would keep its leases alive. Confirmed by
    what the worker says when the stall is over.
    """

    victim: Process
    kind: FaultKind = "stall"

    async def strike(self) -> None:
        self.victim.send(signal.SIGUSR1)
        await _until(lambda: self._said("stalling for"))

    async def problem(self) -> str | None:
        if await _until(lambda: self._said("stalled for")):
            return None
        return f"{self.victim.name} did not stall; does it run comparison.stalling:APP?"

    async def heal(self) -> None:
        """A stall ends by itself."""

    def _said(self, words: str) -> bool:
        return words in self.victim.log.read_text()


@dataclass
class Drain:
    """SIGTERM. Confirmed by an exit of the worker's own, with code 0."""

    victim: Process
    kind: FaultKind = "drain"

    async def strike(self) -> None:
        self.victim.send(signal.SIGTERM)

    async def problem(self) -> str | None:
        try:
            async with asyncio.timeout(DRAIN):
                code = await self.victim.child.wait()
        except TimeoutError:
            return f"{self.victim.name} had not stopped {DRAIN:g} s after SIGTERM"
        return None if code == 0 else f"{self.victim.name} ended with {code} after SIGTERM"

    async def heal(self) -> None:
        """Whoever keeps the workers up starts another one."""


@dataclass
class IdlePause:
    """SIGSTOP of a worker that has no call in flight, while another one works.

    It may just have asked its server for work, and be given some that it will not do.
    """

    victim: Process
    kind: FaultKind = "idle pause"

    async def strike(self) -> None:
        await self.victim.stopped()

    async def problem(self) -> str | None:
        return None if self.victim.is_running else f"{self.victim.name} has ended"

    async def heal(self) -> None:
        self.victim.resume()


async def _until(true: Callable[[], bool]) -> bool:
    """True once the condition holds; False if it does not in time."""
    try:
        async with asyncio.timeout(CONFIRM):
            while not true():
                await asyncio.sleep(0.02)
    except TimeoutError:
        return False
    return True
