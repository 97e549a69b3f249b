"""The loop of a fast worker: what it takes while ends are committed, and how often it asks."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from hand_rolled.fast.claims import FastClaims
from hand_rolled.plugin import PLUGIN
from hand_rolled.reclaim import Reclaims
from tests.hand_rolled.bench import Store
from tests.hand_rolled.fleet import Fleet
from tests.hand_rolled.process import LEDGER, Work, app
from two_workers import RunState

RUNNING = "SELECT count(*) FROM runs WHERE status = 'running'"


async def test_the_next_runs_are_taken_while_the_last_ends_are_committed(fleet: Fleet) -> None:
    """As many as the worker has places, and no more, however long the commit takes."""
    runs = [await fleet.run(Work(name="short")) for _ in range(8)]
    async with fleet.store.holding("LOCK TABLE journal IN EXCLUSIVE MODE"):
        worker = fleet.start(concurrency=2)
        await fleet.store.until(lambda: _are_running(fleet.store, 4))
        await _two_beats(fleet.store, worker)  # and it looked for more at every poll between
        assert await fleet.store.value(RUNNING) == 4
    for run_id in runs:
        await fleet.until_state(run_id, RunState.SUCCEEDED)
    assert len(fleet.events(event="begin")) == 8


async def test_a_run_that_works_keeps_its_place(fleet: Fleet) -> None:
    for _ in range(6):
        await fleet.run(Work(name="long", seconds=60))
    worker = fleet.start(concurrency=3)
    await fleet.store.until(lambda: _are_running(fleet.store, 3))
    await _two_beats(fleet.store, worker)
    assert await fleet.store.value(RUNNING) == 3


async def test_a_suspect_does_not_wait_for_the_end_of_the_backlog(fleet: Fleet) -> None:
    """Busy or not, a worker makes room for it: no place is filled again until it had its turn."""
    lengths = [0.2 + 0.05 * (n % 5) for n in range(300)]  # so that they do not all end at once
    backlog = [await fleet.run(Work(name="short", seconds=it)) for it in lengths]
    fleet.start(concurrency=4, lease_ttl=3, heartbeat_interval=0.5)
    await fleet.until_event(backlog[0])
    await fleet.store.rows(
        "INSERT INTO runs (run_id, kind, tenant, priority, payload, suspect) "
        "SELECT 'suspect', kind, tenant, priority, payload, true FROM runs WHERE run_id = %s "
        "RETURNING run_id",
        backlog[0],
    )
    begun = await fleet.until_event("suspect")
    for run_id in backlog:
        await fleet.until_state(run_id, RunState.SUCCEEDED)
    assert begun["at"] < max(it["at"] for it in fleet.events(event="begin"))


async def test_an_empty_queue_is_asked_once_per_poll(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LEDGER, str(fleet.ledger))
    for _ in range(2):
        await fleet.run(Work(name="long", seconds=60))
    asked: Counter[str] = Counter()

    def counted(owner: type[Any], name: str) -> None:
        method = getattr(owner, name)

        async def counting(*arguments: Any, **options: Any) -> Any:
            asked[name] += 1
            return await method(*arguments, **options)

        monkeypatch.setattr(owner, name, counting)

    counted(FastClaims, "claim")
    counted(Reclaims, "promote")
    settings = fleet.store.database.settings.model_copy(
        update={"concurrency": 10, "poll_interval": 0.1, "drain_timeout": 0.1}
    )
    worker, stop = PLUGIN.worker(settings, [app()], worker_id="w"), asyncio.Event()
    working = asyncio.create_task(worker.run(stop))
    async with asyncio.timeout(60):
        while asked["promote"] < 10 or not fleet.events():
            await asyncio.sleep(0.05)
    stop.set()
    await working
    # Suspects and others apart, and perhaps once more after the two were found.
    assert asked["claim"] <= 4 * asked["promote"]


async def _are_running(store: Store, count: int) -> bool:
    return await store.value(RUNNING) == count


async def _two_beats(store: Store, worker: str) -> None:
    first = await store.value("SELECT heartbeat_at FROM workers WHERE process = %s", worker)
    later = "SELECT heartbeat_at > %s + interval '2 s' FROM workers WHERE process = %s"
    await store.until(lambda: store.value(later, first, worker))
