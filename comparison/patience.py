"""Ask an engine though its server may be down for a moment: some faults take it from us too."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from two_workers import EngineUnavailable, TwoWorkersError

T = TypeVar("T")
AWAY = 60.0
"""Seconds for which a server may be away."""


def expect_outages() -> None:
    """Let the clients' libraries keep to themselves that a server is away: that is the fault."""
    for library in ("psycopg.pool", "temporalio.core"):
        logging.getLogger(library).setLevel(logging.ERROR)


async def patiently(ask: Callable[[], Awaitable[T]]) -> T:
    """What the server says once it is there. `ask` must be safe to repeat.

    Raises what the engine's client raised last when the server stays away.
    """
    began = time.monotonic()
    while True:
        try:
            return await ask()
        except Exception as error:  # whatever this engine's client raises when its server is away
            answered = isinstance(error, TwoWorkersError | TimeoutError)
            if answered and not isinstance(error, EngineUnavailable):
                raise
            if time.monotonic() - began > AWAY:
                raise
            await asyncio.sleep(0.2)
