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

from comparison.cluster import Process
from comparison.plan import FaultKind

LIBRARY = "LIBFAKETIME"
"""The environment variable that says where the library is, if not in a usual place."""
_PLACES = (
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/faketime/libfaketime.so.1",
    "/usr/local/lib/faketime/libfaketime.so.1",
)


class Skipped(Exception):
    """The fault cannot be brought here; the message says why, and belongs into the report."""


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
    """A victim that was started with `skewed`. Confirmed by its own environment."""

    victim: Process
    kind: FaultKind = "skew"

    async def strike(self) -> None:
        """The clock has been wrong since the worker began."""

    async def problem(self) -> str | None:
        environ = Path(f"/proc/{self.victim.pid}/environ")
        try:
            wrong = b"FAKETIME=" in await asyncio.to_thread(environ.read_bytes)
        except OSError as error:
            return f"the environment of {self.victim.name} cannot be read: {error}"
        return None if wrong else f"{self.victim.name} has the right time"

    async def heal(self) -> None:
        """Nothing to undo while the worker lives."""
