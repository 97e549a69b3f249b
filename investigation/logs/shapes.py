"""Group lines that differ only in numbers and identifiers.

`Received block blk_905 of size 91` and `Received block blk_-14 of size 7` have one shape. A log of
a million lines has a few dozen shapes, and a list of those is what one wants to read first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

_VARIABLE = re.compile(
    r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"  # a uuid
    r"|\b[0-9a-f]{12,}\b"  # a digest or another long hexadecimal
    r"|\b0x[0-9a-f]+\b"
    r"|-?\d+",
    re.IGNORECASE,
)
_MAX_SHAPES = 5_000


@dataclass
class Shape:
    """One shape: how often, its first line, the number of its last one, and from when to when.

    A merged log is not always in the order of time, so the first line need not be the earliest.
    """

    count: int
    line: int
    last_line: int
    text: str
    earliest: datetime | None
    latest: datetime | None


class Shapes:
    """Counts shapes in bounded memory: where no two lines are alike it keeps the first."""

    def __init__(self) -> None:
        self._shapes: dict[str, Shape] = {}
        self.beyond = 0

    def add(self, number: int, text: str, time: datetime | None) -> None:
        key = _VARIABLE.sub("#", text[:400])
        if shape := self._shapes.get(key):
            shape.count += 1
            shape.last_line = number
            if time is not None:
                shape.earliest = min(shape.earliest or time, time)
                shape.latest = max(shape.latest or time, time)
        elif len(self._shapes) < _MAX_SHAPES:
            self._shapes[key] = Shape(1, number, number, text, time, time)
        else:
            self.beyond += 1

    def most_common(self, limit: int) -> list[Shape]:
        """The most frequent first; of equal ones the earlier first."""
        return sorted(self._shapes.values(), key=lambda shape: (-shape.count, shape.line))[:limit]

    def __len__(self) -> int:
        return len(self._shapes)
