"""The store against a small model, in random order: claims, crashes, pauses, zombies, limits.

Every handle to a run that was ever given out stays in the game, so most writes come from zombies.
The model says which of them must be accepted; the store has to agree, and after each step its rows
have to look like the model and keep the invariants.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from hand_rolled import operations
from hand_rolled.database import Database
from hand_rolled.entries import Place
from hand_rolled.lease import LeaseLost
from hand_rolled.limits import sweep
from hand_rolled.settings import Settings
from hand_rolled.waits import take_signal
from tests.hand_rolled.bench import Hand, Held, Store, entry
from two_workers import BadInput, BudgetExceeded, Limits, RunClosed

T = TypeVar("T")


def one_of(name: str) -> st.SearchStrategy[Any]:
    """One of the machine's `hands`, `runs` or `helds`, the newest most often."""
    return st.runner().flatmap(lambda machine: st.sampled_from(getattr(machine, name)[::-1][:8]))


hands, runs, helds = one_of("hands"), one_of("runs"), one_of("helds")

FINAL = ("succeeded", "failed", "cancelled")
SUSPECT_AFTER, MAX_CRASHES = 2, 2
BUDGET = 1000

CLEAN = """
TRUNCATE runs, workers, ownership, journal, open_steps, signals, tenants, pools, pool_calls,
         reservations;
UPDATE limits SET counted = false, max_active = NULL, max_active_per_tenant = NULL;
UPDATE active_total SET active = 0;
"""


@dataclass
class Model:
    """One run, as it should be."""

    tenant: str
    state: str = "pending"
    generation: int = 0
    owner: str | None = None
    expired: bool = False
    cancel: bool = False
    suspend: bool = False
    signals: int = 0
    taken: int = 0
    steps: int = 0
    crashes: int = 0
    solo: int = 0
    suspect: bool = False
    alone: bool = False
    reserved: dict[int, int] = field(default_factory=dict)

    def leave(self, state: str) -> None:
        self.state, self.owner, self.expired, self.alone = state, None, False, False
        self.reserved.clear()
        if state in FINAL:
            self.suspect = False

    def requested(self, state: str) -> str:
        return "cancelled" if self.cancel else "suspended" if self.suspend else state


class StoreMachine(RuleBasedStateMachine):
    """Hands are workers by name; `helds` are all handles that were ever given out.

    It begins in the middle of things: with work, and with a zombie whose run was taken over.
    """

    runner: asyncio.Runner
    store: Store

    def __init__(self) -> None:
        super().__init__()
        self.model: dict[str, Model] = {}
        self.dead: set[str] = set()
        self.limits = Limits()
        self.ended: dict[str, tuple[Any, ...]] = {}
        self.hands: list[Hand] = []
        self.runs: list[str] = []
        self.helds: list[Held] = []
        self.do(self.store.rows(CLEAN))
        for _ in range(2):
            self.another_hand()
        for tenant in "abab":
            self.start(tenant, 1)
        self.claim(self.hands[0], 2, False)
        self.reserve(self.helds[0], 100)
        self.lease_ends(self.helds[0].run_id)
        self.reclaim(self.hands[1], 3)

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def of(self, held: Held) -> Model:
        return self.model[held.run_id]

    def owns(self, held: Held) -> bool:
        run = self.of(held)
        return (run.owner, run.generation) == (held.lease.owner, held.lease.generation)

    def attempt(self, held: Held, work: Coroutine[Any, Any, T]) -> T | None:
        """Do a fenced write; it must be refused exactly when the handle is a zombie's."""
        owned = self.owns(held)
        try:
            result = self.do(work)
        except LeaseLost:
            assert not owned, "an owner was refused"
            return None
        assert owned, "a zombie was accepted"
        return result

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

    @property
    def counted(self) -> bool:
        return self.limits.max_active is not None or self.limits.max_active_per_tenant is not None

    def check_limits(self) -> None:
        running = [run.tenant for run in self.model.values() if run.state == "running"]
        assert len(running) <= (self.limits.max_active or 99)
        for tenant in "ab":
            assert running.count(tenant) <= (self.limits.max_active_per_tenant or 99)

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

    # What owners and zombies write

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

    # What clients and operators ask for

    @rule(run_id=runs)
    def cancel(self, run_id: str) -> None:
        run = self.model[run_id]
        view = self.do(self.store.engine.cancel(run_id))
        if run.state not in FINAL:
            run.cancel = True
            if run.state != "running":
                run.leave("cancelled")
        assert view.state == run.state

    @rule(run_id=runs)
    def signal(self, run_id: str) -> None:
        run = self.model[run_id]
        number = run.signals + 1
        signal = self.store.engine.signal(run_id, "go", number, signal_id=str(number))
        if run.state in FINAL:
            with pytest.raises(RunClosed):
                self.do(signal)
            return
        self.do(signal)
        run.signals = number
        if run.state == "waiting":
            run.state = "pending"

    @precondition(lambda self: any(run.state == "waiting" for run in self.model.values()))
    @rule()
    def signal_one_that_waits(self) -> None:
        self.signal(next(it for it in self.runs if self.model[it].state == "waiting"))

    @rule(run_id=runs, suspend=st.booleans())
    def suspend_or_resume(self, run_id: str, suspend: bool) -> None:
        run = self.model[run_id]
        ask = operations.suspend if suspend else operations.resume
        try:
            self.do(ask(self.store.database, run_id))
        except BadInput:
            allowed = (
                ("suspended",) if not suspend else ("pending", "scheduled", "waiting", "running")
            )
            assert run.state not in allowed or (run.state == "running" and not run.suspend)
            return
        if run.state == "running":
            run.suspend = suspend
        else:
            run.state = "suspended" if suspend else "pending"

    @rule(
        total=st.sampled_from([None, 1, 3]),
        each=st.sampled_from([None, 1, 2]),
        calls=st.sampled_from([None, 1]),
    )
    def change_limits(self, total: int | None, each: int | None, calls: int | None) -> None:
        pools = {} if calls is None else {"model": calls}
        self.limits = Limits(max_active=total, max_active_per_tenant=each, pools=pools)
        self.do(self.store.engine.set_limits(self.limits))

    # What must always hold

    @invariant()
    def rows_look_like_the_model(self) -> None:
        rows = {row["run_id"]: row for row in self.do(self.store.rows("SELECT * FROM runs"))}
        assert rows.keys() == self.model.keys()
        for run_id, run in self.model.items():
            row = rows[run_id]
            assert (
                row["status"], row["lease_generation"], row["lease_owner"], row["cancel_requested"],
                row["signals"], row["reserved"],
            ) == (
                run.state, run.generation, run.owner, run.cancel,
                run.signals, sum(run.reserved.values()),
            )  # fmt: skip
            assert run.state in FINAL or row["suspect"] == run.suspect, "no matter once it ended"
            if run.state in FINAL:
                end = (
                    row["status"],
                    row["result"],
                    row["failure"],
                    row["closed_at"],
                    row["version"],
                )
                assert self.ended.setdefault(run_id, end) == end, "an end never changes"

    @invariant()
    def each_generation_was_given_once_and_in_order(self) -> None:
        given = self.do(
            self.store.rows(
                "SELECT run_id, array_agg(lease_generation ORDER BY version) AS given "
                "FROM ownership WHERE event IN ('claimed', 'reclaimed', 'reaped') GROUP BY run_id"
            )
        )
        for row in given:
            assert row["given"] == list(range(1, len(row["given"]) + 1))

    @invariant()
    def counters_match_what_they_count(self) -> None:
        self.do(sweep(self.store.database))
        assert self.do(operations.reconcile(self.store.database)) == []


def test_the_store_agrees_with_the_model(url: str) -> None:
    check(url, 15, phases=[Phase.generate])


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_store_agrees_with_the_model_for_long(url: str) -> None:
    """Also looks for the shortest way to a failure, which takes minutes."""
    check(url, 300, phases=[Phase.generate, Phase.shrink])


def check(url: str, examples: int, *, phases: list[Phase]) -> None:
    chosen = Settings(
        database_url=url, lease_ttl=60, heartbeat_interval=1, notify=False,
        suspect_after=SUSPECT_AFTER, max_crashes=MAX_CRASHES,
    )  # fmt: skip
    with asyncio.Runner() as runner:
        opened = Database(chosen, application="model").opened()
        StoreMachine.runner = runner
        StoreMachine.store = Store(runner.run(opened.__aenter__()), url)
        try:
            run_state_machine_as_test(
                StoreMachine,
                settings=settings(
                    max_examples=examples,
                    stateful_step_count=40,
                    phases=phases,
                    deadline=None,
                    suppress_health_check=list(HealthCheck),
                    database=None,
                ),
            )
        finally:
            runner.run(StoreMachine.store.close())
            runner.run(opened.__aexit__(None, None, None))
