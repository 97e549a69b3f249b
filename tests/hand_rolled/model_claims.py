"""Who there is, who gets a run, and what time and faults do to its owner."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis.stateful import precondition, rule

from tests.hand_rolled.bench import Hand, Held
from tests.hand_rolled.model import (
    BUDGET,
    MAX_CRASHES,
    SUSPECT_AFTER,
    Machine,
    Model,
    hands,
    helds,
    runs,
)


class Claims(Machine):
    """Starts, claims, reclaims, and what makes them necessary."""

    # Who there is

    @rule()
    def another_hand(self) -> None:
        self.hands.append(self.do(self.store.hand()))

    @rule(tenant=st.sampled_from("ab"), priority=st.integers(1, 2))
    def start(self, tenant: str, priority: int) -> None:
        run_id = self.do(self.store.enqueue(tenant=tenant, priority=priority, budget=BUDGET))
        self.model[run_id] = Model(tenant)
        self.runs.append(run_id)

    # Who gets it

    @rule(hand=hands, want=st.integers(1, 3), suspect=st.booleans())
    def claim(self, hand: Hand, want: int, suspect: bool) -> None:
        ready = [
            run_id
            for run_id, run in self.model.items()
            if run.state == "pending" and run.suspect == suspect
        ]
        taken = self.do(hand.claim(want, suspect=suspect))
        assert {it.run_id for it in taken} <= set(ready)
        assert len(taken) <= want
        if hand.owner in self.dead:
            assert taken == []
        elif not self.counted:
            assert len(taken) == min(want, len(ready))
        for held in taken:
            run = self.of(held)
            run.state, run.owner, run.generation = "running", hand.owner, run.generation + 1
            run.alone = run.suspect
            assert held.lease.generation == run.generation
        if self.counted and taken:
            self.check_limits()
        self.helds += taken

    @rule(hand=hands, free=st.integers(0, 3))
    def reclaim(self, hand: Hand, free: int) -> None:
        found = self.do(hand.reclaim(free))
        if hand.owner in self.dead:
            assert found == []
        taken = []
        for orphan in found:
            run = self.model[orphan.run_id]
            assert run.state == "running"
            assert run.expired or run.owner in self.dead, "a live owner was taken over"
            run.crashes, run.solo = run.crashes + 1, run.solo + run.alone
            expected = run.requested(
                "failed" if run.alone and run.solo >= MAX_CRASHES
                else "scheduled" if run.crashes >= SUSPECT_AFTER
                else "running"
            )  # fmt: skip
            assert orphan.became == expected
            run.generation += 1
            run.leave(expected)
            run.suspend = False
            run.suspect = run.suspect or expected == "scheduled"
            if orphan.claimed is not None:
                run.owner = hand.owner
                held = hand.held(orphan.claimed)
                assert held.lease.generation == run.generation
                taken.append(held)
        assert len(taken) <= free
        self.helds += taken

    @property
    def counted(self) -> bool:
        return self.limits.max_active is not None or self.limits.max_active_per_tenant is not None

    def check_limits(self) -> None:
        running = [run.tenant for run in self.model.values() if run.state == "running"]
        assert len(running) <= (self.limits.max_active or 99)
        for tenant in "ab":
            assert running.count(tenant) <= (self.limits.max_active_per_tenant or 99)

    # Time and faults

    @precondition(lambda self: any(run.owner for run in self.model.values()))
    @rule(run_id=runs)
    def lease_ends(self, run_id: str) -> None:
        """The owner was paused, partitioned or killed: nobody can tell."""
        self.do(self.store.expire(run_id))
        self.model[run_id].expired = self.model[run_id].state == "running"

    @rule(hand=hands)
    def process_dies(self, hand: Hand) -> None:
        self.do(self.store.declare_dead(hand))
        self.dead.add(hand.owner)

    @rule(held=helds)
    def heartbeat(self, held: Held) -> None:
        [*rows] = self.do(Hand(self.store, held.lease.owner).heartbeat(held))
        if held.lease.owner in self.dead:
            assert rows == []
        else:
            assert (rows[0]["run_id"] is not None) == self.owns(held)
            if self.owns(held):
                self.of(held).expired = False
                assert rows[0]["cancel_requested"] == self.of(held).cancel

    @rule()
    def time_passes(self) -> None:
        self.do(self.store.make_due())
        hand = Hand(self.store, "anyone")
        self.do(hand.reclaims.promote())
        for run in self.model.values():
            if run.state in ("scheduled", "waiting"):
                run.state = "pending"
