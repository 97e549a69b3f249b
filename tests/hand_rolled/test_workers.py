"""Real worker processes: killed, paused, stalled, stopped."""

from __future__ import annotations

import asyncio
import signal

from tests.hand_rolled.fleet import Fleet
from tests.hand_rolled.process import Work
from two_workers import RunState

LONG = {"lease_ttl": 60, "heartbeat_interval": 1}


async def generations_rise_by_one(fleet: Fleet) -> None:
    """INV-CLAIM, from the history of ownership."""
    gaps = await fleet.store.rows(
        "SELECT run_id FROM ownership WHERE event IN ('claimed', 'reclaimed', 'reaped') "
        "GROUP BY run_id HAVING count(*) <> max(lease_generation)"
    )
    assert gaps == []


async def test_a_killed_workers_run_is_resumed_and_repeats_nothing_recorded(fleet: Fleet) -> None:
    run_id = await fleet.run(Work(name="one"), Work(name="two", seconds=30), Work(name="three"))
    victim = fleet.start()
    await fleet.until_event(run_id, "end")
    await fleet.store.until(lambda: _in_flight(fleet, run_id, "1.0"))
    fleet.kill(victim)
    survivor = fleet.start()
    taken = await fleet.until_event(run_id, beside=victim)
    assert (taken["key"], taken["fence"]) == (f"{run_id}/1.0", 2)
    fleet.kill(survivor)
    assert [it["key"] for it in fleet.events(run_id, event="begin")].count(f"{run_id}/0.0") == 1
    await generations_rise_by_one(fleet)


async def _in_flight(fleet: Fleet, run_id: str, step: str) -> bool:
    keys = [(it["event"], it["key"]) for it in fleet.events(run_id)]
    return ("begin", f"{run_id}/{step}") in keys and ("end", f"{run_id}/{step}") not in keys


async def test_with_crash_detection_a_takeover_does_not_wait_for_the_lease(fleet: Fleet) -> None:
    crash = LONG | {"crash_detection": True}
    victim = fleet.start(**crash)
    run_id = await fleet.run(Work(name="long", seconds=120))
    await fleet.until_event(run_id)
    survivor = fleet.start(**crash)
    await fleet.until_ready(victim, survivor)
    await fleet.until_locked(2)
    await asyncio.sleep(0.3)  # the survivor must have seen the lock held
    fleet.kill(victim)
    async with asyncio.timeout(20):  # a third of the lease
        taken = await fleet.until_event(run_id, beside=victim)
    assert taken["worker"] == survivor
    assert "died" in fleet.log(survivor)


async def test_without_crash_detection_the_lease_decides(fleet: Fleet) -> None:
    victim = fleet.start()
    run_id = await fleet.run(Work(name="long", seconds=120))
    await fleet.until_event(run_id)
    fleet.start()
    fleet.kill(victim)
    taken = await fleet.until_event(run_id, beside=victim)
    [reclaimed] = await fleet.store.rows("SELECT * FROM ownership WHERE event = 'reclaimed'")
    assert (taken["fence"], reclaimed["reason"]) == (2, f"expired under {victim}")


async def test_a_paused_worker_is_not_taken_for_dead_but_its_lease_ends(fleet: Fleet) -> None:
    """And when it wakes up, it finds out before it begins anything more."""
    crash = {"crash_detection": True}
    zombie, survivor = fleet.start(**crash), fleet.start(**crash)
    await fleet.until_locked(2)
    run_id = await fleet.run(Work(name="one", seconds=8), Work(name="two"))
    first = await fleet.until_event(run_id)
    if first["worker"] == survivor:
        zombie, survivor = survivor, zombie
    fleet.send(zombie, signal.SIGSTOP)
    await fleet.until_event(run_id, beside=zombie)
    [reclaimed] = await fleet.store.rows("SELECT * FROM ownership WHERE event = 'reclaimed'")
    assert reclaimed["reason"] == f"expired under {zombie}"
    fleet.send(zombie, signal.SIGCONT)
    await fleet.until_state(run_id, RunState.SUCCEEDED)
    workers = {row["worker"] for row in await fleet.store.rows("SELECT worker FROM journal")}
    assert workers == {survivor}, "nothing of the zombie was accepted"
    by_zombie = [it["key"] for it in fleet.events(run_id, event="begin") if it["worker"] == zombie]
    assert by_zombie == [f"{run_id}/0.0"]
    assert await fleet.store.value("SELECT count(*) FROM workers WHERE dead_at IS NOT NULL") == 0
    await generations_rise_by_one(fleet)


async def test_a_paused_idle_worker_disturbs_nobody(fleet: Fleet) -> None:
    idle = fleet.start()
    await fleet.until_ready(idle)
    fleet.send(idle, signal.SIGSTOP)
    fleet.start()
    runs = [await fleet.run(Work(name="one"), Work(name="two")) for _ in range(5)]
    for run_id in runs:
        await fleet.until_state(run_id, RunState.SUCCEEDED)
    fleet.send(idle, signal.SIGCONT)
    assert len(fleet.events(event="begin")) == 10


async def test_a_blocked_event_loop_does_not_cost_the_lease(fleet: Fleet) -> None:
    """The thread renews for a step that blocks the loop longer than a lease lasts."""
    busy = fleet.start(stall_limit=60)
    run_id = await fleet.run(Work(name="block", seconds=9, how="block"), Work(name="after"))
    await fleet.until_event(run_id)
    fleet.start()
    await fleet.until_state(run_id, RunState.SUCCEEDED)
    assert {it["worker"] for it in fleet.events(run_id)} == {busy}


async def test_an_event_loop_that_stalls_too_long_loses_its_runs(fleet: Fleet) -> None:
    stalled = fleet.start(stall_limit=2)
    run_id = await fleet.run(Work(name="block", seconds=25, how="block"))
    await fleet.until_event(run_id)
    fleet.start()
    taken = await fleet.until_event(run_id, beside=stalled)
    assert taken["fence"] == 2
    assert "stalled" in fleet.log(stalled)


async def test_a_run_that_makes_no_progress_is_taken_from_a_live_worker(fleet: Fleet) -> None:
    patience = {"progress_timeout": 3} | LONG
    stuck = fleet.start(**patience)
    run_id = await fleet.run(Work(name="silent", seconds=120, how="silent"))
    beating = await fleet.run(Work(name="slow", seconds=6))
    await fleet.until_event(run_id)
    await fleet.until_event(beating)
    fleet.start(**patience)
    await fleet.until_event(run_id, beside=stuck)
    await fleet.until_event(run_id, "cancelled")
    await fleet.until_state(beating, RunState.SUCCEEDED)
    assert {it["worker"] for it in fleet.events(beating)} == {stuck}, (
        "it beat, so it was left alone"
    )


async def test_sigterm_hands_over_at_the_next_boundary(fleet: Fleet) -> None:
    steps = [Work(name=str(n), seconds=1) for n in range(4)]
    leaving = fleet.start(**LONG)
    run_id = await fleet.run(*steps)
    await fleet.until_event(run_id)
    fleet.send(leaving, signal.SIGTERM)
    await asyncio.to_thread(fleet.processes[leaving].wait, 60)
    assert fleet.processes[leaving].returncode == 0
    view = await fleet.store.engine.get(run_id)
    assert (view.state, view.native["releases"], view.native["crashes"]) == ("pending", 1, 0)
    fleet.start(**LONG)
    await fleet.until_state(run_id, RunState.SUCCEEDED)
    assert len(fleet.events(run_id, event="begin")) == 4, "nothing was done twice"


async def test_a_drain_that_takes_too_long_interrupts_and_hands_over(fleet: Fleet) -> None:
    leaving = fleet.start(drain_timeout=1, **LONG)
    run_id = await fleet.run(Work(name="long", seconds=120))
    await fleet.until_event(run_id)
    fleet.send(leaving, signal.SIGTERM)
    await fleet.until_event(run_id, "cancelled")
    await asyncio.to_thread(fleet.processes[leaving].wait, 60)
    assert (await fleet.store.engine.get(run_id)).state == "pending"


async def test_a_poison_run_is_failed_and_its_neighbours_are_not(fleet: Fleet) -> None:
    crash = {
        "crash_detection": True, "crash_backoff": 0.1, "suspect_after": 1, "max_crashes": 2,
    }  # fmt: skip
    neighbours = [await fleet.run(Work(name="a", seconds=1), Work(name="b")) for _ in range(3)]
    poison = await fleet.run(Work(name="poison", how="die"))
    async with asyncio.timeout(100):
        while (await fleet.store.engine.get(poison)).state != "failed":
            for worker, process in list(fleet.processes.items()):
                if process.poll() is not None:
                    fleet.kill(worker)
                    del fleet.processes[worker]
            while len(fleet.processes) < 3:
                fleet.start(**crash)
            await asyncio.sleep(0.1)
        for run_id in neighbours:
            await fleet.until_state(run_id, RunState.SUCCEEDED)
    view = await fleet.store.engine.get(poison)
    assert view.failure == "Poison: its worker died 2 times while it ran alone"
