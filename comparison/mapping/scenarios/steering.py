"""How a run is steered: cancel, safe boundary, signal, stop; and how it is started."""

from __future__ import annotations

import asyncio
import time

import psycopg

from comparison.mapping.scenarios.bench import Bench, ids
from comparison.mapping.tour.steps import Tour
from two_workers import Run, RunNotFound, RunState

HEARD = 1.2
"""Seconds in which a request surely reaches its worker: two heartbeats. A worker that rightly goes
on gives no sign that it has heard."""


async def cancel(bench: Bench) -> None:
    """The owner cannot hear the request, and dies. Then another run, whose owner hears it."""
    a = await bench.worker()
    run = await bench.start("tour", Tour(places=["a", "b"]))
    await bench.until_call("begin", run=run)
    await bench.pause(a)
    await bench.cancel(run)
    await bench.kill(a)
    b = await bench.worker()
    end = await bench.result(run)
    resumed = bench.calls(event="begin", worker=b)

    other = await bench.start("tour", Tour(places=["a", "b"]))
    await bench.until_call("begin", run=other)
    asked = time.time()
    await bench.cancel(other)
    acknowledged = time.time()
    told = await bench.until_call("told to stop", run=other)
    other_end = await bench.result(other)
    after = [c for c in bench.calls(event="begin", run=other) if c["t"] > acknowledged]

    bench.fact("the orphan ends", str(end))
    bench.fact("steps that B resumed", len(resumed))
    bench.fact("seconds from request to the running step", round(told["t"] - asked, 3))
    bench.check("INV-CANCEL", "the orphan ends cancelled", end == "cancelled", end)
    if bench.engine.name == "hand_rolled":
        # Temporal may begin the lost step once more before any worker has seen the request.
        bench.check("INV-CANCEL", "nobody resumes it", not resumed, ids(resumed, "key"))
    bench.check(
        "INV-CANCEL", "the running step is told to stop", other_end == "cancelled", other_end
    )
    bench.check(
        "INV-CANCEL", "nothing begins after the acknowledgement", not after, ids(after, "key")
    )


async def boundary(bench: Bench) -> None:
    """Cancelled in the middle of a step that may not be cut in two."""
    await bench.worker("PAYMENT")
    run = await bench.start("payment", Tour(places=["invoice"]))
    await bench.until_call("begin", run=run, key="0.0")
    await bench.cancel(run)
    await asyncio.sleep(HEARD)
    bench.open("invoice")
    end = await bench.result(run)
    events = [f"{c['event']} {c['key']}" for c in bench.calls(run=run)]
    bench.fact("what was executed", events)
    bench.fact("the run ends", str(end))
    bench.check(
        "INV-CANCEL",
        "the payment ends, and nothing begins after it",
        events == ["begin 0.0", "end 0.0"],
        events,
    )
    bench.check("INV-CANCEL", "the run ends cancelled", end == "cancelled", end)


async def signal(bench: Bench) -> None:
    """A run waits for a person; its worker dies meanwhile; the answer is sent twice."""
    a = await bench.worker("APPROVAL")
    run = await bench.start("approval", Tour(places=["a", "b"]))
    await bench.until_state(run, RunState.WAITING)
    owner = (await bench.engine.get(run)).owner
    await bench.kill(a)
    for payload in ("yes", "no"):
        await bench.engine.signal(run, "answer", payload, signal_id="answer-1")
        bench.did(run, f"signal answer-1: {payload}")
    await bench.worker("APPROVAL")
    result = await bench.result(run)
    bench.fact("owner while it waits", bench.letter(owner))
    bench.fact("result", result)
    bench.check("INV-SIGNAL", "a waiting run has no owner", owner is None, owner)
    bench.check(
        "INV-SIGNAL", "a signal sent twice is delivered once", result == ["a", "yes", "b"], result
    )
    bench.check(
        "INV-RESUME",
        "no step is executed twice",
        len(bench.calls(event="begin", run=run)) == 2,
        bench.calls(run=run),
    )


async def stop(bench: Bench) -> None:
    """A is told to stop in the middle of a step, as by a deploy; B is there."""
    a = await bench.worker()
    run = await bench.start("tour", Tour(places=["a", "b"]))
    await bench.until_call("begin", run=run, key="0.0")
    b = await bench.worker()
    leaving = asyncio.create_task(bench.terminate(a))
    await asyncio.sleep(HEARD)
    bench.open("a")
    code = await leaving
    ended = bench.calls(event="end", run=run, key="0.0")
    taken = await bench.until_call("begin", run=run, key="1.0")
    bench.open("b")
    result = await bench.result(run)
    bench.fact("exit code of A", code)
    bench.fact(
        "executions of the step in flight", len(bench.calls(event="begin", run=run, key="0.0"))
    )
    bench.fact("who goes on", bench.letter(taken["worker"]))
    bench.check(
        "INV-RESUME",
        "the step in flight ends, and is not executed again",
        len(ended) == 1 and len(bench.calls(event="begin", run=run, key="0.0")) == 1,
        ids(bench.calls(run=run), "event"),
    )
    bench.check(
        "INV-LIVE",
        "the run goes on elsewhere",
        taken["worker"] == b.worker_id and result == ["a", "b"],
        result,
    )
    bench.check("INV-LIVE", "the worker exits in good order", code == 0, code)


async def atomic(bench: Bench) -> None:
    """An order and its run, in one transaction where that is possible."""
    table = f"orders_{bench.engine.name}"
    async with await psycopg.AsyncConnection.connect(bench.orders_url) as connection:
        await connection.execute(f"CREATE TABLE {table} (run_id text PRIMARY KEY)".encode())
        await connection.commit()
        alone = await _start_and_roll_back(bench, connection, table)
        run = await bench.start("tour", Tour(places=["a"], how="answer"))
        await bench.engine.start(_run(run))
        bench.did(run, "the same start once more")
    await bench.worker()
    if alone:
        await bench.cancel(alone)
        await bench.result(alone)
    result = await bench.result(run)
    bench.fact("after the rollback the run exists", alone is not None)
    bench.fact("executions after two equal starts", len(bench.calls(event="begin", run=run)))
    bench.check(
        "INV-START",
        "an acknowledged start exists, once",
        result == ["a"] and len(bench.calls(event="begin", run=run)) == 1,
        result,
    )
    if bench.engine.name == "hand_rolled":
        bench.check("INV-START", "a rolled back start never existed", alone is None, alone)


async def _start_and_roll_back(
    bench: Bench, connection: psycopg.AsyncConnection, table: str
) -> str | None:
    """Insert an order, start its run, roll back. Returns the run if it is there nevertheless."""
    run = "run_123-order"
    insert = f"INSERT INTO {table} VALUES (%s)".encode()
    await connection.execute(insert, [run])
    if bench.engine.name == "hand_rolled":
        await bench.engine.start(_run(run), conn=connection)  # type: ignore[call-arg] # the table's own
    else:
        await bench.engine.start(_run(run))
    bench.observer.watch(run)
    bench.did(run, "insert the order and start its run")
    await connection.rollback()
    bench.did(run, "roll back: the order is gone")
    try:
        await bench.engine.get(run)
    except RunNotFound:
        bench.did(run, "the run does not exist")
        return None
    bench.did(run, "the run exists, without its order")
    return run


def _run(run_id: str) -> Run:
    plan = Tour(places=["a"], how="answer")
    return Run(run_id=run_id, kind="tour", payload=plan.model_dump(mode="json"))
