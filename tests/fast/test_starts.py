"""Many starts at once: each run once, a taken id noticed, no deadlock between clients."""

from __future__ import annotations

import asyncio
import random

import pytest

from hand_rolled.engine import digest_of
from hand_rolled.fast.starts import BULK_ROWS, IN_FLIGHT
from tests.hand_rolled.bench import KIND, Store
from two_workers import Run, RunConflict

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


def test_a_digest_does_not_depend_on_the_release() -> None:
    """Another digest for the same run would make every restart of a known run a conflict."""
    run = Run(run_id="a", kind="k", tenant="t", budget=5, payload={"b": [1, None], "a": "ü"})
    assert digest_of(run) == ("a2b6e411c99ddb49c5d3f52a70ddf858593d0d6279a887e39205ee5a39ddbe04")
    assert digest_of(run.model_copy(update={"priority": 1, "run_id": "b"})) == digest_of(run)
