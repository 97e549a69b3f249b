"""Many starts at once: each run once, a taken id noticed, no deadlock between clients."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import time
from collections import Counter
from typing import Any

import hypothesis.strategies as st
import psycopg
import pytest
from hypothesis import example, given

from hand_rolled.entries import digest_of
from hand_rolled.fast import starts
from hand_rolled.fast.starts import (
    BULK_ROWS,
    ENQUEUE_MANY,
    ENQUEUE_NEW,
    IN_FLIGHT,
    Starts,
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


async def test_the_first_group_is_under_way_before_the_next_is_prepared(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = """
        SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
        AND wait_event_type = 'Lock' AND query LIKE '%INSERT INTO runs%'
    """
    asked = runs(2 * BULK_ROWS)

    def watched(run: Run) -> str:
        if run is asked[-1]:
            # Nothing else runs on this loop meanwhile: what is not sent by now never is.
            deadline = time.monotonic() + 20
            while eye.execute(waiting).fetchone() == (0,):
                assert time.monotonic() < deadline, "the database waits for the client"
        return digest_of(run)

    monkeypatch.setattr(starts, "digest_of", watched)
    monkeypatch.setattr(starts, "TURN", 5)
    await store.database.fetch("SELECT 1")  # connected, and its plans are fresh
    with psycopg.connect(store.url, autocommit=True) as eye:
        async with store.holding("LOCK TABLE runs"):
            starting = asyncio.create_task(Starts(store.database).start_many(asked))
            await store.until_blocked(IN_FLIGHT)
        assert await starting == {}
    assert await started(store) == len(asked)


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
        assert row["digest"] == digest_of(run)
    tenants = {row["tenant"] for row in await store.rows("SELECT tenant FROM tenants")}
    assert tenants == {run.tenant for run in asked}


texts = st.text(min_size=1, max_size=20)
payloads = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@given(kind=texts, tenant=texts, payload=payloads, budget=st.none() | st.integers(0, 10**15))
@example(kind="k", tenant="t", payload={"b": [{"d": 1, "c": 2}], "a": "{"}, budget=0)
def test_a_digest_is_that_of_the_content_as_json(
    kind: str, tenant: str, payload: Any, budget: int | None
) -> None:
    content = {"budget": budget, "kind": kind, "payload": payload, "tenant": tenant}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    run = Run(run_id="a", **content)
    assert digest_of(run) == hashlib.sha256(text.encode()).hexdigest()


def test_a_digest_does_not_depend_on_the_release() -> None:
    """Another digest for the same run would make every restart of a known run a conflict."""
    run = Run(run_id="a", kind="k", tenant="t", budget=5, payload={"b": [1, None], "a": "ü"})
    assert digest_of(run) == ("a2b6e411c99ddb49c5d3f52a70ddf858593d0d6279a887e39205ee5a39ddbe04")
    assert digest_of(run.model_copy(update={"priority": 1, "run_id": "b"})) == digest_of(run)
