"""Faults on real worker processes: kill, pause, partition, drain, and the server's own restart."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from tests.temporal_version.app import PARALLEL
from tests.temporal_version.conftest import Bench, bench_at, new_server, until
from tests.temporal_version.proxy import Proxy
from two_workers import RunState


async def test_a_killed_workers_step_starts_elsewhere_with_its_checkpoint(bench: Bench) -> None:
    run_id = await bench.start("a", "b", how="hold")
    first = await bench.process()
    await bench.ledger.until("begin", 1)
    await bench.checkpointed(run_id)  # what reached the server survives the worker
    await bench.kill(first)
    second = await bench.process()
    begins = await bench.ledger.until("begin", 2)
    bench.ledger.release()
    assert await bench.engine.result(run_id, timeout=60) == ["a", "b"]
    assert [entry["pid"] for entry in begins] == [first.pid, second.pid]
    assert begins[1]["fence"] > begins[0]["fence"]
    assert begins[1]["checkpoint"] >= 1
    keys = [entry["key"] for entry in bench.ledger.entries("end")]
    assert keys == [f"{run_id}/0.0", f"{run_id}/1.0"], "what was recorded is not done again"


@pytest.mark.parametrize("arm", ["tuned", "stock"])
async def test_a_step_by_reference_is_asked_for_again_after_a_kill(bench: Bench, arm: str) -> None:
    """The workflow was in the dead worker's cache, so first it is rebuilt from history."""
    run_id = await bench.start(how="hold", size=3)
    first = await bench.process("LARGE", arm=arm)
    await bench.ledger.until("begin", 1)
    await bench.kill(first)
    await bench.process("LARGE", arm=arm)
    await bench.ledger.until("begin", 2)
    bench.ledger.release()
    assert await bench.engine.result(run_id, timeout=100) == "yyy"


async def test_a_step_by_reference_waits_for_no_dead_workers_cache(bench: Bench) -> None:
    """Nor does the workflow task that takes its result."""
    run_id = await bench.start(how="hold", size=3)
    first = await bench.process("LARGE", sticky_timeout="300")
    await bench.ledger.until("begin", 1)
    await bench.kill(first)
    await bench.process("LARGE", sticky_timeout="300")
    begins = await bench.ledger.until("begin", 2, deadline=150)
    assert begins[1]["fence"][1] == 2, "no attempt was spent on asking"
    bench.ledger.release()
    assert await bench.engine.result(run_id, timeout=60) == "yyy"


async def test_a_paused_worker_learns_on_waking_that_it_lost_the_step(bench: Bench) -> None:
    run_id = await bench.start("a", how="hold")
    paused = await bench.process()
    await bench.ledger.until("begin", 1)
    paused.send_signal(signal.SIGSTOP)
    await bench.process()
    begins = await bench.ledger.until("begin", 2)
    paused.send_signal(signal.SIGCONT)
    [lost] = await bench.ledger.until("cancelled", 1)
    assert lost["pid"] == paused.pid
    assert lost["fence"] < begins[-1]["fence"]
    bench.ledger.release()
    assert await bench.engine.result(run_id, timeout=60) == ["a"]
    [completed] = await bench.events(run_id, "ACTIVITY_TASK_COMPLETED")
    assert completed.activity_task_completed_event_attributes.identity == begins[-1]["worker"]


async def test_a_paused_workers_late_result_is_refused(bench: Bench) -> None:
    """The effect ends on waking, before it can hear: the server refuses the older attempt."""
    run_id = await bench.start("a", "b", how="silent")
    paused = await bench.process(heartbeat_throttle="1.5")
    await bench.ledger.until("begin", 1)
    paused.send_signal(signal.SIGSTOP)
    await bench.process()
    await bench.ledger.until("begin", 2)
    bench.ledger.release()
    paused.send_signal(signal.SIGCONT)
    assert await bench.engine.result(run_id, timeout=60) == ["a", "b"]
    completed = await bench.events(run_id, "ACTIVITY_TASK_COMPLETED")
    by = [e.activity_task_completed_event_attributes.identity for e in completed]
    zombie = bench.ledger.entries("begin")[0]["worker"]
    assert by[0] != zombie


async def test_a_stopped_worker_hands_its_step_over_at_once_with_a_fresh_checkpoint(
    bench: Bench,
) -> None:
    run_id = await bench.start("a", how="hold")
    first = await bench.process(grace="0", heartbeat_timeout="60")
    await bench.ledger.until("begin", 1)
    second = await bench.process(grace="0", heartbeat_timeout="60")
    first.send_signal(signal.SIGTERM)
    async with asyncio.timeout(30):
        assert await first.wait() == 0
        begins = await bench.ledger.until("begin", 2, deadline=30)  # well before the lease of 60 s
    assert begins[1]["pid"] == second.pid
    assert begins[1]["checkpoint"] >= 1
    bench.ledger.release()
    assert await bench.engine.result(run_id, timeout=60) == ["a"]


async def test_deploys_burn_no_attempt(bench: Bench) -> None:
    """More orderly stops than the retry policy has attempts; each exit is clean (sdk-python#300).

    By itself the SDK reports them as failures of type `WorkerShutdown`, and deploys use a step up.
    """
    run_id = await bench.start("a", how="hold")
    for n in range(4):
        process = await bench.process(grace="0")
        await bench.ledger.until("begin", n + 1)
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0
    bench.ledger.release()
    await bench.process()
    assert await bench.engine.result(run_id, timeout=60) == ["a"]


async def test_a_stopped_worker_finishes_within_its_grace(bench: Bench) -> None:
    """And its completion arrives: sdk-python#367 and #368 were lost at shutdown."""
    run_id = await bench.start("a", how="hold")
    process = await bench.process(grace="50")
    await bench.ledger.until("begin", 1)
    process.send_signal(signal.SIGTERM)
    bench.ledger.release()
    assert await process.wait() == 0
    assert len(bench.ledger.entries("begin")) == 1
    assert len(bench.ledger.entries("end")) == 1
    [record] = await bench.engine.steps(run_id)
    assert (record.outcome, record.attempt) == ("succeeded", 1)


async def test_a_partitioned_worker_loses_its_step_and_hears_of_it_afterwards(
    bench: Bench,
) -> None:
    run_id = await bench.start("a", how="hold")
    async with Proxy(bench.env["TEMPORAL_ADDRESS"]) as proxy:
        cut_off = await bench.process_at(proxy.address)
        await bench.ledger.until("begin", 1)
        proxy.silence()
        await bench.process()
        begins = await bench.ledger.until("begin", 2)
        assert begins[1]["pid"] != cut_off.pid
        # Without the server's word: the SDK's own timer, heartbeat timeout plus 5 s.
        [lost] = await bench.ledger.until("cancelled", 1)
        assert lost["pid"] == cut_off.pid
        proxy.heal()
        bench.ledger.release()
        assert await bench.engine.result(run_id, timeout=60) == ["a"]


async def test_a_run_in_a_dead_workers_cache_goes_on_elsewhere(bench: Bench) -> None:
    """sdk-python#783: its next task first waits for the dead worker, `sticky_timeout` long."""
    run_id = await bench.start(calls=4)
    first = await bench.process("COUNTS")
    await bench.until_state(run_id, RunState.WAITING)
    await bench.kill(first)
    await bench.process("COUNTS")
    await bench.engine.signal(run_id, "go", "on", signal_id="1")
    assert await bench.engine.result(run_id, timeout=100) == ["on"]
    assert len(await bench.events(run_id, "WORKFLOW_TASK_TIMED_OUT")) <= 1
    assert len(bench.ledger.entries("begin")) == 4, "rebuilt from history, not done again"


async def test_a_blocked_thread_does_not_starve_the_heartbeat(bench: Bench) -> None:
    run_id = await bench.start("a", "b", "c", how="thread")
    async with bench.worker(PARALLEL):
        await bench.ledger.until("begin", 3)
        started = asyncio.get_running_loop().time()
        await until(lambda: asyncio.get_running_loop().time() - started > 4)  # past the lease of 3
        bench.ledger.release()
        assert await bench.engine.result(run_id, timeout=60) == ["a", "b", "c"]
    assert len(bench.ledger.entries("begin")) == 3


async def test_a_blocked_event_loop_does_lose_the_step(bench: Bench) -> None:
    """Heartbeat is evidence of life: a worker that cannot run its own loop has none to give."""
    run_id = await bench.start("a", how="block:6")
    blocked = await bench.process()
    await bench.ledger.until("begin", 1)
    await bench.process()
    # Its polls are open all the while, so the next attempt may come to it again; it is a next one.
    begins = await bench.ledger.until("begin", 2)
    assert begins[1]["attempt"] > begins[0]["attempt"]
    assert await bench.engine.result(run_id, timeout=60) == ["a"]
    assert blocked.returncode is None


async def test_an_effect_without_progress_loses_its_step(bench: Bench) -> None:
    run_id = await bench.start("a", how="silent")
    first = await bench.process(progress_timeout="1")
    await bench.ledger.until("begin", 1)
    await bench.process()
    await bench.ledger.until("begin", 2)
    [lost] = await bench.ledger.until("cancelled", 1)
    assert lost["pid"] == first.pid
    bench.ledger.release()
    assert await bench.engine.result(run_id, timeout=60) == ["a"]


async def test_runs_survive_the_death_of_the_server(tmp_path: Path) -> None:
    server = new_server(tmp_path / "server")
    await server.start()
    try:
        async with bench_at(server.address, tmp_path) as bench:
            waiting = await bench.start("a", "b", how="hold")
            async with bench.worker():
                await bench.ledger.until("begin", 1)
                await server.kill()
                await server.start()
                bench.ledger.release()
                assert await bench.engine.result(waiting, timeout=100) == ["a", "b"]
            assert (await bench.engine.get(waiting)).state is RunState.SUCCEEDED
    finally:
        await server.stop()


@pytest.mark.slow  # the SDK tries for about 20 s to tell the server
async def test_a_worker_stops_although_the_server_is_away(tmp_path: Path) -> None:
    server = new_server(tmp_path / "server")
    await server.start()
    try:
        async with bench_at(server.address, tmp_path) as bench:
            await bench.start("a", how="hold")
            process = await bench.process(grace="0")
            await bench.ledger.until("begin", 1)
            await server.kill()
            process.terminate()
            async with asyncio.timeout(100):
                assert await process.wait() == 0
    finally:
        await server.stop()


async def test_a_result_is_awaited_through_a_restart_of_the_server(tmp_path: Path) -> None:
    server = new_server(tmp_path / "server")
    await server.start()
    try:
        async with bench_at(server.address, tmp_path) as bench:
            run_id = await bench.start("a")
            awaited = asyncio.create_task(bench.engine.result(run_id, timeout=100))
            await server.kill()
            await server.start()
            async with bench.worker():
                assert await awaited == ["a"]
    finally:
        await server.stop()
