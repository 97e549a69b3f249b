"""The model of a run, and what a state machine over the store needs of it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant

from hand_rolled import operations
from hand_rolled.lease import LeaseLost
from hand_rolled.limits import sweep
from tests.hand_rolled.bench import Hand, Held, Store
from two_workers import Limits

T = TypeVar("T")

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


def one_of(name: str) -> st.SearchStrategy[Any]:
    """One of the machine's `hands`, `runs` or `helds`, the newest most often."""
    return st.runner().flatmap(lambda machine: st.sampled_from(getattr(machine, name)[::-1][:8]))


hands, runs, helds = one_of("hands"), one_of("runs"), one_of("helds")


class Machine(RuleBasedStateMachine):
    """The model beside the store. Hands are workers by name; `helds` are all handles ever given."""

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
    def each_worker_knows_whether_it_is_counted(self) -> None:
        told = "SELECT count(*) FROM workers w JOIN limits l ON w.counted <> l.counted"
        assert self.do(self.store.value(told)) == 0

    @invariant()
    def counters_match_what_they_count(self) -> None:
        self.do(sweep(self.store.database))
        assert self.do(operations.reconcile(self.store.database)) == []
