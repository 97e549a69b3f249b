"""What a measurement returns, and the moment at which one begins."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """`count` units of work were done within `seconds`."""

    count: int
    seconds: float

    @property
    def rate(self) -> float:
        """Units per second."""
        return self.count / self.seconds


class FirstStart:
    """Remembers when the first handler began."""

    def __init__(self) -> None:
        self.at: float | None = None

    def mark(self) -> None:
        """Call it first thing in every handler."""
        if self.at is None:
            self.at = time.perf_counter()
