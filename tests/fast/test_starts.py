"""Many starts at once: each run once, a taken id noticed, no deadlock between clients."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from typing import Any

import hypothesis.strategies as st
import psycopg
import pytest
from hypothesis import example, given

from hand_rolled.entries import as_json, is_same
from hand_rolled.fast.starts import (
    BULK_ROWS,
    ENQUEUE_MANY,
    ENQUEUE_NEW,
    IN_FLIGHT,
)
from tests.hand_rolled.bench import KIND, Store
from two_workers import Run, RunConflict, RunView

MANY = BULK_ROWS * (IN_FLIGHT + 1) + 10


def runs(count: int, payload: object = 1) -> list[Run]:
    return [Run(run_id=f"run-{n:05}", kind=KIND, payload=payload) for n in range(count)]


async def started(store: Store) -> int:
    return await store.value("SELECT count(*) FROM runs")


async def test_all_are_started_and_may_be_started_again(store: Store) -> None:
    for _ in range(2):
        await store.engine.start_many(runs(MANY))
        assert await started(store) == MANY
    assert await store.value("SELECT sum(version) FROM runs") == MANY, "left as they were"


async def test_the_first_whose_id_is_taken_by_other_content_is_named(store: Store) -> None:
    for taken in "run-00700", "run-00300":
        await store.engine.start(Run(run_id=taken, kind=KIND, payload="other"))
    with pytest.raises(RunConflict, match="run-00300"):
        await store.engine.start_many(runs(MANY))
    assert await started(store) == MANY, "the rest is started"
    assert (await store.row("run-00300"))["payload"] == "other"


async def test_an_id_given_twice_is_one_run_or_a_conflict(store: Store) -> None:
    await store.engine.start_many(runs(3) + runs(3))
    assert await started(store) == 3
    first, other = (Run(run_id="twice", kind=KIND, payload=n) for n in (1, 2))
    with pytest.raises(RunConflict, match="twice"):
        await store.engine.start_many([first, other])
    assert (await store.row("twice"))["payload"] == 1


async def test_clients_that_start_the_same_runs_neither_deadlock_nor_conflict(store: Store) -> None:
    tenants = [f"tenant-{n}" for n in range(7)]
    asked = [
        Run(run_id=f"run-{n:05}", kind=KIND, tenant=tenants[n % 7], payload=n) for n in range(MANY)
    ]

    async def client(seed: int) -> None:
        shuffled = random.Random(seed).sample(asked, len(asked))
        await store.engine.start_many(shuffled)

    await asyncio.gather(*(client(seed) for seed in range(6)))
    assert await started(store) == MANY
    await store.rows("SELECT pg_stat_force_next_flush()")
    deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    assert await store.value(deadlocks) == 0


async def test_tenants_are_inserted_in_one_order(store: Store) -> None:
    """Clients whose runs differ, but not their tenants, would deadlock too."""
    names = [f"tenant-{n:02}" for n in range(50)]
    shuffled = random.Random(1).sample(names, len(names))
    await store.engine.start_many(
        [Run(run_id=f"run-{n}", kind=KIND, tenant=name) for n, name in enumerate(shuffled)]
    )
    rows = await store.rows("SELECT tenant FROM tenants ORDER BY ctid")
    assert [row["tenant"] for row in rows] == names


async def test_a_client_that_repeats_itself_is_soon_believed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is refused leaves dead rows behind, so it is not tried for each group."""
    await store.engine.start_many(runs(MANY))
    sent = Counter[str]()
    fetch = store.database.fetch

    async def counted(statement: Any, /, **values: Any) -> Any:
        sent[statement] += 1
        return await fetch(statement, **values)

    monkeypatch.setattr(store.database, "fetch", counted)
    await store.engine.start_many(runs(MANY))
    assert sent[ENQUEUE_NEW] == IN_FLIGHT
    assert sent[ENQUEUE_MANY] == -(-MANY // BULK_ROWS)


async def test_a_commit_whose_answer_is_lost_is_no_conflict(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch = store.database.fetch
    lost: list[str] = []

    async def loses_first_answers(statement: Any, /, **values: Any) -> Any:
        rows = await fetch(statement, **values)
        if lost.count(statement) < 2:
            lost.append(statement)
            raise psycopg.OperationalError("the connection is lost")
        return rows

    monkeypatch.setattr(store.database, "fetch", loses_first_answers)
    await store.engine.start_many(runs(MANY))
    assert lost.count(ENQUEUE_NEW) == 2
    assert await started(store) == MANY


async def test_two_groups_are_under_way_at_a_time(store: Store) -> None:
    async with store.holding("LOCK TABLE runs"):
        starting = asyncio.create_task(store.engine.start_many(runs(MANY)))
        await store.until_blocked(2)
    await starting
    assert await started(store) == MANY


async def test_callers_with_one_id_are_one_run_or_a_conflict(store: Store) -> None:
    """All in one group; what each asked for is compared with what is in force."""
    await store.engine.start(Run(run_id="known", kind=KIND, payload={"a": 1, "b": 2}))
    asked = [
        Run(run_id=run_id, kind=KIND, payload=payload)
        for run_id in ("known", "new")
        for payload in ({"a": 1, "b": 3}, {"b": 2, "a": 1}, {"b": 3, "a": 1}, {"a": True, "b": 2})
    ]
    ends = await asyncio.gather(*map(store.engine.start, asked), return_exceptions=True)
    assert [isinstance(end, RunView) for end in ends] == [
        False, True, False, False,  # the stored one is in force
        True, False, True, False,  # the first
    ]  # fmt: skip
    assert {type(end) for end in ends} == {RunView, RunConflict}


async def test_a_run_that_cannot_be_stored_fails_alone(store: Store) -> None:
    bad = Run(run_id="bad", kind=KIND, payload=float("nan"))
    good = [store.engine.start(run) for run in runs(3)]
    refused, *views = await asyncio.gather(store.engine.start(bad), *good, return_exceptions=True)
    assert isinstance(refused, ValueError)
    assert [view.run_id for view in views if isinstance(view, RunView)] == [
        run.run_id for run in runs(3)
    ]


NASTY = 'quote " backslash \\ brace {},\n emoji \U0001f600'


async def test_what_is_asked_for_is_what_is_stored(store: Store) -> None:
    asked = [
        Run(
            run_id=f"run-{n}",
            kind=f"{NASTY} {n}",
            tenant=f"{NASTY} {-n}",
            priority=n,
            payload={"b": f"nul \x00, lone surrogate \ud800, {NASTY}", "a": [None, n, 0.5, True]},
            budget=None if n % 2 else 10**15,
        )
        for n in (5, 2, 3, 1, 4)
    ]
    await store.engine.start_many(asked)
    for run in asked:
        row = await store.row(run.run_id)
        assert Run(**{name: row[name] for name in Run.model_fields}) == run
        assert list(row["payload"]) == ["b", "a"], "in the app's own order"
    tenants = {row["tenant"] for row in await store.rows("SELECT tenant FROM tenants")}
    assert tenants == {run.tenant for run in asked}


payloads = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


def backwards(value: Any) -> Any:
    """The same content in another order."""
    if isinstance(value, dict):
        return {key: backwards(value[key]) for key in reversed(value)}
    return [backwards(item) for item in value] if isinstance(value, list) else value


@given(payload=payloads)
@example(payload={"b": [{"d": 1, "c": 1.0}], "a": "\ud800\x00"})
def test_what_is_stored_is_the_same_as_what_was_asked_for(payload: Any) -> None:
    run = Run(run_id="a", kind="k", tenant="t", budget=5, payload=payload)
    stored = {"kind": "k", "tenant": "t", "budget": 5, "payload": json.loads(as_json(payload))}
    assert is_same(run, stored)
    assert is_same(run, {**stored, "payload": backwards(payload)})
    assert is_same(run, run.model_copy(update={"run_id": "b", "priority": 1}))


@pytest.mark.parametrize(
    "change",
    [{"kind": "l"}, {"tenant": "u"}, {"budget": None}, {"budget": 6},
     {"payload": {"n": [True]}}, {"payload": {"n": [1.0]}}, {"payload": {"n": ["1"]}}],
)  # fmt: skip
def test_any_other_content_is_another_run(change: dict[str, Any]) -> None:
    run = Run(run_id="a", kind="k", tenant="t", budget=5, payload={"n": [1]})
    assert not is_same(run, run.model_copy(update=change))
