"""The measurements themselves, small, on a real server: that they measure what they say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from benchmarks.databases import Server, benchmark_server
from benchmarks.peers import hand_rolled_fast_peer, hand_rolled_peer
from benchmarks.rounds import Contest, Entry, measured
from benchmarks.store.claims import (
    all_claimed,
    claim_rate,
    claiming,
    in_turns,
    workers_claiming,
)
from benchmarks.store.growth import by_backlog
from benchmarks.store.snapshot import Turns, under_snapshot
from benchmarks.workload import APP
from hand_rolled.plugin import PLUGIN
from hand_rolled.shift import Shift
from two_workers.engines import new_worker_id


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    async with benchmark_server(tmp_path_factory.mktemp("bench")) as server:
        yield server


def test_the_server_is_durable(server: Server) -> None:
    assert server.settings["fsync"] == "on"
    assert server.settings["synchronous_commit"] == "on"


@pytest.mark.parametrize("peer", [hand_rolled_peer, hand_rolled_fast_peer])
async def test_each_database_is_fresh_and_all_runs_are_done(server: Server, peer: object) -> None:
    for _ in range(2):
        async with server.database() as url:
            timing = await peer.steps(url, 50)  # type: ignore[attr-defined] # a peer's module
            assert timing.count == 50
            assert timing.seconds > 0


async def test_every_contender_works_once_per_round(server: Server) -> None:
    entries = {
        "read": Entry("hand_rolled", "noop", 20),
        "fast": Entry("hand_rolled+fast", "noop", 20),
    }
    said: list[str] = []
    found = await Contest("no-op runs", "runs/s", entries).held(server.database, 2, said.append)
    assert {name: len(rates) for name, rates in found.rates.items()} == {"read": 2, "fast": 2}
    assert len(said) == 2


async def test_a_failing_measurement_says_why(server: Server) -> None:
    contest = Contest("nothing", "x/s", {"nobody": Entry("hand_rolled", "no_such_measure", 1)})
    with pytest.raises(RuntimeError, match="no_such_measure"):
        await contest.held(server.database, 1, lambda line: None)


async def test_a_measurement_that_hangs_ends_and_says_where(server: Server) -> None:
    entry = Entry("hand_rolled", "noop", 1_000_000)
    with pytest.raises(RuntimeError, match="Stack for <Task pending"):
        await measured(server.database, entry, patience=8)


async def test_concurrent_claims_are_all_counted(server: Server) -> None:
    from benchmarks.peers.clock import connected
    from benchmarks.store.backlog import fill

    async with server.database() as url, claiming(url, {}) as claim, connected(url) as conn:
        await fill(conn, pending=100)
        one, other = await in_turns(claim, claim, 5)
        assert len(one) == len(other) == 5


async def test_clients_that_claim_at_once_are_workers_of_their_own(server: Server) -> None:
    from benchmarks.peers.clock import connected
    from benchmarks.store.backlog import fill

    env = {"HAND_ROLLED_FAST": "true"}
    counted = "SELECT count(*), count(DISTINCT lease_owner) FROM runs WHERE status = 'running'"
    async with (
        server.database() as url,
        workers_claiming(url, env, 4) as claims,
        connected(url) as conn,
    ):
        await fill(conn, pending=5_000)
        rate = await claim_rate(claims, seconds=0.5)
        running, owners = await (await conn.execute(counted)).fetchone() or (0, 0)
        assert 0 < rate * 0.5 <= running
        assert owners == 4
        timing = await all_claimed(claims, 200, batch=10)
        assert timing.count == 200
        assert await (await conn.execute(counted)).fetchone() == (running + 200, 4)
        with pytest.raises(RuntimeError, match="the backlog ran out"):
            await all_claimed(claims, 5_000, batch=10)


async def test_growth_is_measured_at_each_size(server: Server) -> None:
    async with server.database() as url:
        curve = await by_backlog(url, [300, 600])
    assert [size for size, _ in curve] == [300, 600]
    assert all(milliseconds > 0 for _, milliseconds in curve)


async def test_claims_go_on_under_a_held_snapshot(server: Server) -> None:
    held = await under_snapshot(server, {}, Turns(1), limits=True, hold=1, window=0.4)
    assert held.undisturbed > 0
    assert held.disturbed > 0


async def test_cases_are_measured_one_by_one_while_the_others_stand_still() -> None:
    turns, measuring, most, went_on = Turns(3), 0, 0, asyncio.Event()

    async def measure() -> float:
        nonlocal measuring, most
        assert not went_on.is_set()
        measuring += 1
        most = max(most, measuring)
        await asyncio.sleep(0)
        measuring -= 1
        return 1.0

    async def case() -> None:
        assert await turns.alone(measure) == 1.0
        went_on.set()

    await asyncio.gather(case(), case(), case())
    assert most == 1


async def test_a_worker_that_is_cancelled_while_it_wakes_up_ends(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A measurement ends its worker so, at the moment when the last run's end has woken it."""
    shifts: list[Shift] = []

    def remembered(*args: Any, **named: Any) -> Shift:
        shifts.append(Shift(*args, **named))
        return shifts[-1]

    monkeypatch.setattr("hand_rolled.worker.Shift", remembered)
    async with server.database() as url, hand_rolled_peer.prepared(url, {}) as (settings, _):
        worker = PLUGIN.worker(settings, [APP], worker_id=new_worker_id())
        working = asyncio.ensure_future(worker.run(asyncio.Event()))
        async with asyncio.timeout(30):
            while not shifts or not shifts[0].wake._waiters:
                await asyncio.sleep(0.001)
            shifts[0].wake.set()
            await asyncio.sleep(0)  # it is being woken, and does not run yet
            working.cancel()
            with pytest.raises(asyncio.CancelledError):
                await working
