"""The diary: what steps write down about themselves, one line of JSON per event."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

DIARY = "BENCH_DIARY"
"""The environment variable that names the file."""
PATIENCE = 90.0  # seconds after which an event is no longer waited for

Event = Literal["began", "ticked", "ended", "interrupted"]


class Entry(BaseModel):
    """A line of the diary. `t` is CLOCK_MONOTONIC in seconds, `pid` the worker process."""

    t: float
    run: str
    pid: int
    event: Event

    @property
    def is_last(self) -> bool:
        """True when the step is over, one way or the other."""
        return self.event in ("ended", "interrupted")


@contextmanager
def writing(run: str) -> Iterator[Callable[[Event], None]]:
    """Write down events of a run, in the file that the environment names."""
    # One write per line to a file opened for appending: lines of several processes never mix.
    file = os.open(os.environ[DIARY], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        yield partial(_write, file, run)
    finally:
        os.close(file)


def _write(file: int, run: str, event: Event) -> None:
    entry = {"t": time.monotonic(), "run": run, "pid": os.getpid(), "event": event}
    os.write(file, json.dumps(entry).encode() + b"\n")


@dataclass
class Diary:
    """Reads what the steps of one measurement have written so far."""

    path: Path
    _entries: list[Entry] = field(default_factory=list)
    _read: int = 0

    def entries(self) -> list[Entry]:
        """All of it."""
        with self.path.open("rb") as file:
            file.seek(self._read)
            news = file.read()
        complete = news[: news.rfind(b"\n") + 1]
        self._read += len(complete)
        self._entries += [Entry(**json.loads(line)) for line in complete.splitlines()]
        return self._entries

    async def first(self, wanted: Callable[[Entry], bool], *, patience: float = PATIENCE) -> Entry:
        """Wait for the first entry like this. Raises `TimeoutError` after `patience` seconds."""
        seen = 0
        async with asyncio.timeout(patience):
            while True:
                entries = self.entries()
                for entry in entries[seen:]:
                    if wanted(entry):
                        return entry
                seen = len(entries)
                await asyncio.sleep(0.005)

    async def begun(self, run: str, *, pid: int | None = None) -> Entry:
        """Wait until some worker, or this one, is at the run's step."""
        return await self.first(lambda entry: entry.run == run and pid in (None, entry.pid))

    async def over(self, run: str, pid: int) -> Entry:
        """Wait until this worker's step of the run is over."""
        return await self.first(
            lambda entry: entry.run == run and entry.pid == pid and entry.is_last
        )
