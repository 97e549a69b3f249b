"""Claims from marks: cheap under a held snapshot, and nothing that comes to lie before a mark is
lost, or waits longer than a mark lasts."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any, TypeVar

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    precondition,
    rule,
    run_state_machine_as_test,
)

from hand_rolled.claim import CLAIM
from hand_rolled.database import Connection, Database
from hand_rolled.fast import claims
from hand_rolled.fast.claims import CLAIM_BEHIND, Spot, behind
from hand_rolled.settings import Settings
from tests.hand_rolled.bench import KIND, Hand, Held, Store
from two_workers import Limits

T = TypeVar("T")
LASTS = claims.POLLS * Settings(database_url="postgresql://nowhere").poll_interval  # at most


class Clock:
    """Moves by a hundredth with each look, so that every walk takes some time, and when told."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        self.now += 0.01
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(claims, "clock", clock)
    return clock


async def taken(hand: Hand, want: int = 1) -> set[str]:
    return {held.run_id for held in await hand.claim(want)}


async def enqueue(store: Store, count: int, **more: Any) -> list[str]:
    return [await store.enqueue(**more) for _ in range(count)]


async def test_a_claim_from_a_mark_does_not_step_over_what_a_snapshot_keeps(store: Store) -> None:
    await store.rows(
        "INSERT INTO runs (run_id, kind, tenant, priority, payload) "
        "SELECT 'many-' || lpad(n::text, 5, '0'), 'test', 'a', 3, 'null' "
        "FROM generate_series(1, 4000) n"
    )
    await store.rows("VACUUM ANALYZE runs")
    hand = await store.hand()
    async with store.holding("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ") as other:
        await other.execute("SELECT FROM runs LIMIT 1")
        await hand.claim(3000)
        last = await store.row("many-03000")
        mark = Spot(last["ready_at"], last["run_id"])
        async with await store.connect() as connection:
            walk = await _pages(connection, CLAIM, hand, suspect=False)
            marked = await _pages(connection, CLAIM_BEHIND, hand, **behind([(3, mark)]))
    assert walk > 150, "it walks over all that were claimed"
    assert marked < 60


async def _pages(connection: Connection, statement: str, hand: Hand, **values: Any) -> int:
    """How many pages one claim of one run looks at."""
    common = {"worker": hand.owner, "kind": KIND, "code": "1", "want": 1}
    async with connection.transaction(force_rollback=True):
        cursor = await connection.execute(
            "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + statement,  # type: ignore[arg-type] # psycopg asks for a literal
            common | values | {"ttl": timedelta(seconds=60)},
        )
        row = await cursor.fetchone()
    assert row is not None
    plan = row["QUERY PLAN"][0]["Plan"]
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]


async def test_a_new_run_of_a_better_priority_is_seen_from_a_mark(store: Store) -> None:
    normal = await enqueue(store, 5)
    hand = await store.hand()
    assert await taken(hand, 2) == set(normal[:2])
    late = await store.enqueue(priority=5)
    urgent = await store.enqueue(priority=1)
    assert await taken(hand, 2) == {urgent, normal[2]}
    assert await taken(hand, 3) == {*normal[3:], late}


async def test_a_run_that_returns_waits_no_longer_than_a_mark_lasts(
    store: Store, clock: Clock
) -> None:
    first, *rest = await enqueue(store, 9)
    hand = await store.hand()
    [held] = await hand.claim()
    assert held.run_id == first
    assert await taken(hand) == {rest[0]}
    await held.ending.leave("pending")
    assert await taken(hand) == {rest[1]}, "it lies before the mark"
    clock.now += LASTS
    assert await taken(hand) == {first}


async def test_a_claim_that_finds_too_little_looks_again_from_the_head(store: Store) -> None:
    first, second, third = await enqueue(store, 3)
    hand = await store.hand()
    [held] = await hand.claim()
    await held.ending.leave("pending")
    assert await taken(hand, 3) == {first, second, third}
    assert await taken(hand) == set()


async def test_many_that_return_are_all_taken_before_a_new_mark_is_made(
    store: Store, clock: Clock
) -> None:
    runs = await enqueue(store, 12)
    hand = await store.hand()
    helds = await hand.claim(5)
    clock.now += LASTS
    for held in helds:
        await held.ending.leave("pending")
    back = [await taken(hand) for _ in helds]
    assert set().union(*back) == set(runs[:5])
    assert await taken(hand) == {runs[5]}


async def test_a_start_that_is_committed_late_is_not_stranded(store: Store, clock: Clock) -> None:
    hand = await store.hand()
    async with store.holding(
        "INSERT INTO runs (run_id, kind, tenant, priority, payload) "
        "VALUES ('late', 'test', 'a', 3, 'null')"
    ):
        normal = await enqueue(store, 4)
        assert await taken(hand) == {normal[0]}
    assert await taken(hand) == {normal[1]}, "it lies before the mark"
    clock.now += LASTS
    assert await taken(hand) == {"late"}


async def test_a_claim_that_is_rolled_back_strands_nothing(store: Store, clock: Clock) -> None:
    first, *rest = await enqueue(store, 4)
    hand = await store.hand()
    async with store.holding("SELECT FROM runs WHERE run_id = %s FOR NO KEY UPDATE", first):
        assert await taken(hand) == {rest[0]}
    clock.now += LASTS
    assert await taken(hand) == {first}


async def test_limits_that_are_switched_on_are_kept_at_once(store: Store) -> None:
    await enqueue(store, 9)
    hand = await store.hand()
    assert len(await taken(hand, 2)) == 2
    await store.engine.set_limits(Limits(max_active=3))
    assert len(await taken(hand, 5)) == 1
    await store.engine.set_limits(Limits())
    assert len(await taken(hand, 5)) == 5


# In random order, against the rows themselves.

CLEAN = "TRUNCATE runs, workers, ownership, tenants"
WAITING = """
SELECT run_id, priority FROM runs WHERE status = 'pending' ORDER BY priority, ready_at, run_id
"""
LATE = """
INSERT INTO runs (run_id, kind, tenant, priority, payload)
VALUES (%s, 'test', 'a', %s, 'null')
"""
HANDS = 3


class QueueMachine(RuleBasedStateMachine):
    """Workers claim while runs start, start late, come back, and claims of others are rolled back.

    A claim may pass over a run only if it came to lie before a mark, and only for as long as a mark
    lasts. A run that was just started is never passed over.
    """

    runner: asyncio.Runner
    store: Store
    clock: Clock

    def __init__(self) -> None:
        super().__init__()
        self.do(self.store.rows(CLEAN))
        self.hands = [self.do(self.store.hand()) for _ in range(HANDS)]
        self.helds: list[Held] = []
        self.out_of_line: dict[str, float] = {}  # since when it may lie before a mark
        self.open: dict[str, Connection] = {}  # by the run that a transaction starts or locks
        self.count = 0

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    @rule(priority=st.integers(1, 3), count=st.integers(1, 4))
    def start(self, priority: int, count: int) -> None:
        for _ in range(count):
            self.do(self.store.enqueue(priority=priority))

    @precondition(lambda self: len(self.open) < 2)
    @rule(priority=st.integers(1, 3))
    def begin_to_start(self, priority: int) -> None:
        self.count += 1
        self.begin(f"late-{self.count}", LATE, f"late-{self.count}", priority)

    @precondition(lambda self: len(self.open) < 2)
    @rule()
    def begin_to_claim(self) -> None:
        waiting = [row["run_id"] for row in self.waiting() if row["run_id"] not in self.open]
        if waiting:
            lock = "SELECT FROM runs WHERE run_id = %s FOR NO KEY UPDATE"
            self.begin(waiting[0], lock, waiting[0])

    def begin(self, run_id: str, statement: str, *values: Any) -> None:
        connection = self.do(self.store.connect())
        self.do(connection.execute("BEGIN"))
        self.do(connection.execute(statement, values))  # type: ignore[arg-type] # psycopg asks for a literal
        self.open[run_id] = connection

    @precondition(lambda self: self.open)
    @rule()
    def end_what_was_begun(self) -> None:
        """A start is committed; a lock without a write is as good as a claim rolled back."""
        run_id, connection = self.open.popitem()
        self.do(connection.execute("COMMIT"))
        self.do(connection.close())
        self.out_of_line[run_id] = self.clock.now

    @precondition(lambda self: self.helds)
    @rule(data=st.data())
    def come_back(self, data: st.DataObject) -> None:
        held = self.helds.pop(data.draw(st.integers(0, len(self.helds) - 1)))
        self.do(held.ending.leave("pending"))
        self.out_of_line[held.run_id] = self.clock.now

    @rule(seconds=st.sampled_from([LASTS / 10, LASTS / 3, LASTS]))
    def time_passes(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule(number=st.integers(0, HANDS - 1), want=st.integers(1, 4))
    def claim(self, number: int, want: int) -> None:
        ready = [row for row in self.waiting() if row["run_id"] not in self.open]
        began = self.clock.now
        helds = self.do(self.hands[number].claim(want))
        self.helds += helds
        got = {held.run_id for held in helds}
        assert len(got) == min(want, len(ready)), "it looks at all before it takes too few"
        assert got <= {row["run_id"] for row in ready}
        worst = max((n for n, row in enumerate(ready) if row["run_id"] in got), default=0)
        for row in ready[:worst]:
            if row["run_id"] not in got:
                assert row["run_id"] in self.out_of_line, "a new run was passed over"
                assert began < self.out_of_line[row["run_id"]] + LASTS, "passed over for too long"
        for run_id in got:
            self.out_of_line.pop(run_id, None)

    def waiting(self) -> list[Any]:
        return self.do(self.store.rows(WAITING))

    def teardown(self) -> None:
        for connection in self.open.values():
            self.do(connection.close())


def test_nothing_is_stranded_and_nothing_new_is_passed_over(url: str, clock: Clock) -> None:
    check(url, clock, examples=10, phases=[Phase.generate])


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_nothing_is_stranded_and_nothing_new_is_passed_over_for_long(
    url: str, clock: Clock
) -> None:
    check(url, clock, examples=500, phases=[Phase.generate, Phase.shrink])


def check(url: str, clock: Clock, *, examples: int, phases: list[Phase]) -> None:
    chosen = Settings(database_url=url, lease_ttl=60, heartbeat_interval=1, notify=False, fast=True)
    with asyncio.Runner() as runner:
        opened = Database(chosen, application="queue").opened()
        QueueMachine.runner, QueueMachine.clock = runner, clock
        QueueMachine.store = Store(runner.run(opened.__aenter__()), url)
        try:
            run_state_machine_as_test(
                QueueMachine,
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
            runner.run(QueueMachine.store.close())
            runner.run(opened.__aexit__(None, None, None))
