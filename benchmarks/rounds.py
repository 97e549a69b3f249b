"""Interleaved rounds: every contender once per round, in an order that turns from round to round.

A contender works in a process and a database of its own. What is compared is the ratio within a
round: a neighbour on the machine slows a whole round down, but seldom one contender alone.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from benchmarks.measure import ADDRESS, PATIENCE
from benchmarks.results import Rounds
from benchmarks.timing import Timing

LAST_WORDS = 10.0  # seconds that a measurement gets, when its time is over, to say where it hangs

Arena = Callable[[], AbstractAsyncContextManager[str]]
"""Makes the place of one measurement, a fresh database say, and yields its address."""


@dataclass(frozen=True)
class Entry:
    """A contender in a contest: which peer, which of its measures, and over how many units."""

    peer: str
    measure: str
    count: int
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Contest:
    """Contenders, by the name that the table uses, who do the same thing."""

    name: str
    unit: str
    entries: Mapping[str, Entry]

    async def held(self, arena: Arena, rounds: int, say: Callable[[str], None]) -> Rounds:
        """Hold so many rounds."""
        rates: dict[str, list[float]] = {name: [] for name in self.entries}
        names = list(self.entries)
        for number in range(rounds):
            turn = number % len(names)
            for name in names[turn:] + names[:turn]:
                timing = await measured(arena, self.entries[name])
                rates[name].append(timing.rate)
            latest = ", ".join(f"{name} {found[-1]:,.0f}" for name, found in rates.items())
            say(f"{self.name}, round {number + 1}: {latest} {self.unit}")
        counts = {name: entry.count for name, entry in self.entries.items()}
        return Rounds(contest=self.name, unit=self.unit, rates=rates, counts=counts)


async def measured(arena: Arena, entry: Entry, *, patience: float = 180.0) -> Timing:
    """One measurement. Raises `RuntimeError` with the end of its output if it fails, or takes more
    than `patience` seconds."""
    async with arena() as address:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "benchmarks.measure"),
            *(entry.peer, entry.measure, str(entry.count)),
            env={**os.environ, **entry.env, ADDRESS: address, PATIENCE: str(patience)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(patience + LAST_WORDS):
                output, _ = await child.communicate()
        except TimeoutError:
            raise RuntimeError(f"{entry.peer} {entry.measure}: no end in {patience:g} s") from None
        finally:
            if child.returncode is None:
                os.killpg(child.pid, signal.SIGKILL)  # with what it started, a pgbench say
                await child.wait()
    lines = output.decode(errors="replace").splitlines()
    if child.returncode != 0 or not lines:
        raise RuntimeError(f"{entry.peer} {entry.measure} failed:\n" + "\n".join(lines[-30:]))
    return Timing(**json.loads(lines[-1]))
