"""What any engine must survive: a killed worker, a paused worker, a stopped one."""

from __future__ import annotations

import asyncio
import signal

import pytest

from comparison.chaos.cluster import Cluster
from two_workers import RunCancelled, RunState

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_killed_workers_run_is_resumed_where_it_stood(cluster: Cluster) -> None:
    victim = cluster.start_worker()
    run_id = await cluster.start_run("tour", ["a", "b", "c"])
    cluster.open("a")
    await cluster.until(lambda: cluster.calls(event="begin", key="1.0"), what="in the second step")
    victim.kill()
    victim.wait()
    survivor = cluster.start_worker()
    cluster.open("b", "c")
    assert await cluster.engine.result(run_id, timeout=90) == ["a", "b", "c"]

    assert len(cluster.calls(event="begin", key="0.0")) == 1, "a recorded step is never repeated"
    first, second = cluster.calls(event="begin", key="1.0")
    assert (first["pid"], second["pid"]) == (victim.pid, survivor.pid)
    assert second["fence"] > first["fence"], "the fence rises with every takeover"
    records = [record.key for record in await cluster.engine.steps(run_id)]
    assert records == [f"{run_id}/{n}.0" for n in range(3)]


async def test_a_paused_worker_is_taken_over_and_told_to_stop(cluster: Cluster) -> None:
    paused = cluster.start_worker()
    run_id = await cluster.start_run("tour", ["a", "b"])
    cluster.open("a")
    await cluster.until(lambda: cluster.calls(event="begin", key="1.0"), what="in the second step")
    successor = cluster.start_worker()
    paused.send_signal(signal.SIGSTOP)
    await cluster.until(
        lambda: cluster.calls(event="begin", key="1.0", pid=successor.pid), what="taken over"
    )
    paused.send_signal(signal.SIGCONT)
    await cluster.until(
        lambda: cluster.calls(event="told to stop", pid=paused.pid), what="told to stop"
    )
    cluster.open("b")
    assert await cluster.engine.result(run_id, timeout=90) == ["a", "b"]

    # On Temporal a frozen worker may also have been handed an attempt by a poll that it left open,
    # and begins it when it wakes: late, and under an older fence, by which the outside refuses it.
    begun = cluster.calls(event="begin", key="1.0")
    assert begun[0]["pid"] == paused.pid
    newest = max(begun, key=lambda call: call["fence"])
    assert newest["pid"] == successor.pid
    assert newest["fence"] > begun[0]["fence"]
    last = (await cluster.engine.steps(run_id))[-1]
    assert str(successor.pid) in str(last.worker), "the successor's write is the recorded one"


async def test_a_cancelled_run_is_not_resumed_after_its_workers_death(cluster: Cluster) -> None:
    victim = cluster.start_worker()
    run_id = await cluster.start_run("tour", ["a", "b"])
    await cluster.until(lambda: cluster.calls(event="begin", key="0.0"), what="in the first step")
    victim.send_signal(signal.SIGSTOP)  # so that the request cannot reach it before it dies
    await cluster.engine.cancel(run_id)
    victim.kill()
    victim.wait()
    survivor = cluster.start_worker()
    with pytest.raises(RunCancelled):
        await cluster.engine.result(run_id, timeout=90)
    assert cluster.calls(pid=survivor.pid) == []


async def test_a_worker_told_to_stop_hands_over_and_exits_cleanly(cluster: Cluster) -> None:
    leaving = cluster.start_worker()
    run_id = await cluster.start_run("tour", ["a", "b"])
    await cluster.until(lambda: cluster.calls(event="begin", key="0.0"), what="in the first step")
    staying = cluster.start_worker()
    leaving.send_signal(signal.SIGTERM)
    cluster.open("a", "b")
    assert await asyncio.to_thread(leaving.wait, 60) == 0
    assert await cluster.engine.result(run_id, timeout=90) == ["a", "b"]
    assert (await cluster.engine.get(run_id)).state is RunState.SUCCEEDED
    assert staying.poll() is None
