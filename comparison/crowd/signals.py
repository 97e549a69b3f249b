"""Words for the runs that wait for them: early, late, twice, and in the instant of parking.

A word that comes while a run is at work must be kept for it. One that comes while a run is about
to park must wake it: whoever looks for words, finds none and then goes to sleep has slept through
it. One that is sent again, by a client that had no answer the first time, must not be heard twice.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field
from typing import Literal

from comparison.crowd.notes import Sent
from comparison.ledger import Ledger
from comparison.patience import patiently
from comparison.runs import Runs
from comparison.world.client import WorldClient
from two_workers import Engine, RunClosed, RunState

MOMENTS: tuple[Literal["early", "parking", "late"], ...] = ("early", "parking", "late")
LOOK = 0.2  # seconds between two looks at a run's state: nothing announces it


@dataclass
class Sender:
    """Sends the words, in order for each run, at moments that the seed chooses."""

    engine: Engine
    world: WorldClient
    runs: Runs
    chance: random.Random
    sent: list[Sent] = field(default_factory=list)

    async def speak(self, run: str, words: int) -> None:
        """All words of one run, and at its end the first of them once more."""
        for number in range(words):
            moment = self.chance.choice(MOMENTS)
            match moment:
                case "parking":
                    await self._until_answered(f"{run}/{2 * number}.0")
                case "late":
                    await self._until_waiting(run)
                case "early":
                    pass
            await self._send(run, number, moment, times=self.chance.choice((1, 2)))
            if number == 1:  # a client's retry that comes very late: another word has come since
                await self._send(run, 0, "early", times=1)

    async def _send(
        self, run: str, number: int, moment: Literal["early", "parking", "late"], *, times: int
    ) -> None:
        """One word, `times` times at once."""
        sent_ns, acknowledged_ns = time.monotonic_ns(), None
        signal_id = f"{run}-word-{number}"

        async def signal() -> None:
            await self.engine.signal(run, "word", number, signal_id=signal_id)

        answers = await asyncio.gather(
            *(patiently(signal) for _ in range(times)), return_exceptions=True
        )
        for answer in answers:
            if isinstance(answer, RunClosed):
                continue  # a repetition may come after the end
            if answer is not None:
                raise answer
            acknowledged_ns = time.monotonic_ns()
        self.sent.append(
            Sent(
                run=run,
                number=number,
                moment=moment,
                times=times,
                sent_ns=sent_ns,
                acknowledged_ns=acknowledged_ns,
            )
        )

    async def _until_answered(self, key: str) -> None:
        """The world has answered the call after which the run parks: it is about to."""

        def answered(ledger: Ledger) -> bool | None:
            calls = (call for call in ledger.calls.values() if call.who.key == key)
            return any(call.delivered for call in calls) or None

        await self.world.until(answered, timeout=600)

    async def _until_waiting(self, run: str) -> None:
        while (view := await patiently(lambda: self.engine.get(run))).state is not RunState.WAITING:
            if view.state.is_final:
                return
            await asyncio.sleep(LOOK)
