"""A worker whose wall clock is wrong, by libfaketime. A lease must not care.

The monotonic clock is left alone: it is what timeouts and trust deadlines are measured with, and
on a real machine a wrong wall clock does not touch it either.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from comparison.breakers.base import Scene, Skipped
from comparison.ledger import Ledger

LIBRARY = "LIBFAKETIME"
"""The environment variable that says where the library is, if not in a usual place."""
WORK = 60.0
"""Seconds in which a worker that has joined must be given work, while others want it too."""
_PLACES = (
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/faketime/libfaketime.so.1",
    "/usr/local/lib/faketime/libfaketime.so.1",
)


def skewed(seconds: float, env: Mapping[str, str]) -> dict[str, str]:
    """Variables for a process whose wall clock is `seconds` ahead (or behind). Raises `Skipped`.

    Confirmed before use: a Python started with them must see the wrong time.
    """
    library = next((p for p in (env.get(LIBRARY, ""), *_PLACES) if p and Path(p).exists()), None)
    if library is None:
        raise Skipped(f"libfaketime is not installed; install faketime, or set {LIBRARY} to it")
    found = {
        "LD_PRELOAD": library,
        "FAKETIME": f"{seconds:+g}s",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    seen = subprocess.run(
        [sys.executable, "-c", "import time; print(time.time())"],
        env={**os.environ, **found},
        capture_output=True,
        text=True,
        check=False,
    )
    off = float(seen.stdout) - time.time() if seen.returncode == 0 else 0.0
    if abs(off - seconds) > abs(seconds) / 2:
        raise Skipped(f"{library} does not work here: the clock was {off:+.0f} s off")
    return found


@dataclass
class Skew:
    """A worker joins whose wall clock is wrong, and leaves again when the fault is healed.

    Confirmed by its own environment, and by a call that it makes: it has been given work, or has
    taken some from somebody whose lease looks old to it.
    """

    scene: Scene
    seconds: float
    joined: str = ""

    async def strike(self) -> None:
        self.joined = await self.scene.workers.join(skewed(self.seconds, os.environ))

    async def problem(self) -> str | None:
        worker = self.scene.workers.named(self.joined)
        assert worker is not None
        environ = Path(f"/proc/{worker.pid}/environ")
        try:
            wrong = b"FAKETIME=" in await asyncio.to_thread(environ.read_bytes)
        except OSError as error:
            return f"the environment of {worker.name} cannot be read: {error}"
        if not wrong:
            return f"{worker.name} has the right time"
        try:
            await self.scene.world.until(self._has_called, timeout=WORK)
        except TimeoutError:
            return f"{worker.name} was given no work"
        return None

    async def heal(self) -> None:
        await self.scene.workers.leave(self.joined)

    def _has_called(self, ledger: Ledger) -> bool | None:
        return any(call.who.worker == self.joined for call in ledger.calls.values()) or None
