"""One worker, from its kernel or its supervisor: killed, paused, stalled, drained."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass

from comparison.breakers.base import CONFIRM
from comparison.cluster import Process

DRAIN = 30.0
"""Seconds that a worker may take to finish or hand over what it has."""


@dataclass
class Kill:
    """SIGKILL. Confirmed by the kernel, which has reaped the process."""

    victim: Process

    async def strike(self) -> None:
        await self.victim.killed()

    async def problem(self) -> str | None:
        code = self.victim.child.returncode
        return None if code == -signal.SIGKILL else f"{self.victim.name} had ended with {code}"

    async def heal(self) -> None:
        """Whoever keeps the workers up starts another one."""


@dataclass
class Pause:
    """SIGSTOP. Confirmed by the kernel, which says that the process is stopped."""

    victim: Process

    async def strike(self) -> None:
        await self.victim.stopped()

    async def problem(self) -> str | None:
        return None if self.victim.is_running else f"{self.victim.name} has ended"

    async def heal(self) -> None:
        self.victim.resume()


@dataclass
class Stall:
    """The worker's event loop stands still: the commonest pause of a Python process.

    The worker must run `comparison.stalling:APP`; its environment says for how long. Its other
    threads live on, and a heartbeat from one of them would keep its leases alive. Confirmed by
    what the worker says when the stall is over.
    """

    victim: Process
    over_ns: int | None = None
    """When the loop went on, by the worker's own word."""

    async def strike(self) -> None:
        before = len(self._said("stalling for "))
        self.victim.send(signal.SIGUSR1)
        await _until(lambda: len(self._said("stalling for ")) > before)

    async def problem(self) -> str | None:
        """A stall ends by itself: it is over when as many ends as begins have been said."""
        if not await _until(self._is_over):
            return f"{self.victim.name} did not stall; does it run comparison.stalling:APP?"
        self.over_ns = int(self._said("stalled for ")[-1].rpartition(" ")[2])
        return None

    async def heal(self) -> None:
        """Nothing to undo."""

    def _is_over(self) -> bool:
        return 0 < len(self._said("stalling for ")) == len(self._said("stalled for "))

    def _said(self, words: str) -> list[str]:
        """The lines of its log that begin so, after their time."""
        lines = [line.partition(" ")[2] for line in self.victim.log.read_text().splitlines()]
        return [line for line in lines if line.startswith(words)]


@dataclass
class Drain:
    """SIGTERM. Confirmed by an exit of the worker's own, with code 0."""

    victim: Process

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


async def _until(true: Callable[[], bool]) -> bool:
    """True once the condition holds; False if it does not in time."""
    try:
        async with asyncio.timeout(CONFIRM):
            while not true():
                await asyncio.sleep(0.02)
    except TimeoutError:
        return False
    return True
