"""What owners and zombies write. The model says which of it must be accepted."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis.stateful import rule

from hand_rolled.entries import Place
from hand_rolled.waits import take_signal
from tests.hand_rolled.bench import Held, entry
from tests.hand_rolled.model import Machine, helds
from two_workers import BudgetExceeded


class Writes(Machine):
    """Records, reservations, slots, signals taken, ends."""

    @rule(held=helds, cost=st.sampled_from([0, 10]))
    def record(self, held: Held, cost: int) -> None:
        run = self.of(held)
        step = run.steps
        self.attempt(held, held.journal.record(Place(step, 0), entry(cost=cost)))
        if self.owns(held):
            run.steps += 1
            run.crashes = run.solo = 0
            run.suspect = run.alone = False
            run.reserved.pop(step, None)

    @rule(held=helds, amount=st.sampled_from([100, 700]))
    def reserve(self, held: Held, amount: int) -> None:
        run = self.of(held)
        if run.steps in run.reserved:
            return
        try:
            if self.attempt(held, held.slots.try_reserve(Place(run.steps, 0), 1, amount)):
                run.reserved[run.steps] = amount
        except BudgetExceeded:
            assert self.owns(held)

    @rule(held=helds)
    def take_slot(self, held: Held) -> None:
        self.attempt(held, held.slots.try_take(Place(self.of(held).steps, 0), "model"))

    @rule(held=helds)
    def take_a_signal(self, held: Held) -> None:
        run = self.of(held)
        result = self.attempt(held, take_signal(held.journal, Place(run.steps, 0), "go", "wait:1"))
        if result is None:
            return
        taken, payload, seen = result
        assert (taken, seen) == (run.taken < run.signals, run.signals)
        if taken:
            assert payload == run.taken + 1, "in order, once"
            run.taken += 1
            run.steps += 1

    def ended_by_this_handle(self, held: Held) -> bool:
        """Ending twice is what a worker does whose first answer got lost: not a zombie's write."""
        return held.lease.lost is not None

    @rule(held=helds, ok=st.booleans())
    def finish(self, held: Held, ok: bool) -> None:
        if self.ended_by_this_handle(held):
            return
        became = self.attempt(held, held.ending.finish(result=1, failure=None if ok else "broken"))
        if became is not None:
            run = self.of(held)
            assert became == ("cancelled" if run.cancel else "succeeded" if ok else "failed")
            run.leave(became)
            run.suspend = False
            held.lease.lost = "ended"

    @rule(held=helds, to=st.sampled_from(["waiting", "waiting", "pending", "scheduled"]))
    def leave(self, held: Held, to: str) -> None:
        if self.ended_by_this_handle(held):
            return
        run = self.of(held)
        seen = run.signals if to == "waiting" else None
        became = self.attempt(held, held.ending.leave(to, wait=60, signals_seen=seen))
        if became is not None:
            assert became == run.requested(to)
            run.leave(became)
            run.suspend = False
            held.lease.lost = "ended"
