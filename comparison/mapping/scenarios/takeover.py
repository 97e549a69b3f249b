"""Who gets a run, and who gets it next: claim, lease, heartbeat, orphan, fence."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from comparison.mapping.scenarios.bench import Bench, ids
from comparison.mapping.tour.steps import Tour, Visit

RENEWALS = 2
"""Heartbeats to see before a fault, so that the timeline shows a lease that was renewed."""


async def race(bench: Bench) -> None:
    """Two workers look for the same run at the same moment; then twelve runs at once."""
    first = await bench.start("tour", Tour(places=["a"], how="brief"))
    async with bench.observer.held(first):
        a, b = await bench.worker(), await bench.worker()
    bench.did(first, "both workers have looked; let them go")
    await bench.result(first)
    crowd = [await bench.start("tour", Tour(places=["a"], how="answer")) for _ in range(12)]
    await asyncio.gather(*(bench.result(run) for run in crowd))

    begun = bench.calls(event="begin")
    executions = Counter(ids(begun, "run"))
    share = Counter(bench.letter(worker) for worker in ids(begun, "worker"))
    claims = await bench.observer.claims(first)
    bench.fact("owners that the first run was given to", claims)
    bench.fact("executions of the first run", executions[first])
    bench.fact("runs", 1 + len(crowd))
    bench.fact("executions", len(begun))
    bench.fact("by worker", {w.letter: share[w.letter] for w in (a, b)})
    bench.check("INV-CLAIM", "the first run is given to one worker", claims == 1, claims)
    bench.check(
        "INV-CLAIM",
        "each run is executed by one worker, once",
        set(executions.values()) == {1},
        f"{len(begun)} executions of {len(executions)} runs",
    )


async def pause(bench: Bench) -> None:
    """A is paused in its second step until B has taken over, and then wakes up with a result."""
    a = await bench.worker()
    run = await bench.start("tour", Tour(places=["a", "b", "c"]))
    bench.open("a")
    old = await bench.until_call("begin", run=run, key="1.0")
    b = await bench.worker()
    await bench.until(lambda: bench.observer.renewals(run) >= RENEWALS, what="renewed")
    await bench.pause(a)
    new = await bench.until_call("begin", run=run, key="1.0", worker=b)
    refusal = await bench.observer.stale_commit(old, Visit(place="b"))
    bench.did(run, f"commit A's step again, as its owner then: {refusal}")
    bench.open("b", only=a)
    bench.resume(a)
    await bench.until(
        lambda: [c for c in bench.calls(worker=a, key="1.0") if c["event"] != "begin"],
        what="A knows",
    )
    bench.open("b", "c")
    result = await bench.result(run)

    bench.fact("owner before", "A")
    bench.fact("owner after", bench.letter(new["worker"]))
    bench.fact("fence of A", old["fence"])
    bench.fact("fence of B", new["fence"])
    bench.fact("stale commit", refusal.partition(":")[0])
    bench.fact("what A heard", refusal)
    _account_for(bench, run, old, new)
    bench.check(
        "INV-FENCE", "the commit of an older owner is refused", refusal != "accepted", refusal
    )
    recorded = {step.key.rpartition("/")[2]: step for step in await bench.engine.steps(run)}
    bench.fact("steps in the report", len(recorded))
    writer = bench.letter(recorded["1.0"].worker) if "1.0" in recorded else "nobody"
    bench.check(
        "INV-FENCE", "the record is the new owner's", writer == b.letter, f"written by {writer}"
    )
    bench.check(
        "INV-SAME", "the report is what it would have been", result == ["a", "b", "c"], result
    )


def _account_for(bench: Bench, run: str, old: dict[str, Any], new: dict[str, Any]) -> None:
    """The calls that were begun: A's as `old`, the same step by B as `new`, and all others."""
    begun = bench.calls(event="begin", run=run)
    woken = [c for c in begun if c["worker"] == old["worker"] and c["t"] > new["t"]]
    stale = [c for c in woken if c["fence"] < new["fence"]]
    bench.fact("calls that A began on waking, though another owned them", len(stale))
    bench.fact("calls on the bill", len(begun))
    bench.fact("keys of the repeated call", sorted({old["key"], new["key"]}))
    bench.check(
        "INV-CLAIM",
        "the fence rises with the takeover",
        new["fence"] > old["fence"],
        f"{old['fence']} then {new['fence']}",
    )
    if bench.engine.name == "hand_rolled":  # Temporal promises no such thing to a worker
        bench.check(
            "INV-TRUST", "A begins nothing that it no longer owns", not stale, ids(stale, "key")
        )
    bench.check(
        "INV-RESUME",
        "the recorded step is not executed again",
        len(bench.calls(event="begin", run=run, key="0.0")) == 1,
        ids(begun, "key"),
    )


async def kill(bench: Bench) -> None:
    """A is killed in its second step; B, already there, takes over."""
    a = await bench.worker()
    run = await bench.start("tour", Tour(places=["a", "b", "c"]))
    bench.open("a")
    await bench.until_call("begin", run=run, key="1.0")
    b = await bench.worker()
    await bench.until(lambda: bench.observer.renewals(run) >= RENEWALS, what="renewed")
    await bench.kill(a)
    died = bench.did(run, "A is dead; its run is an orphan as soon as its ownership ends")
    taken = await bench.until_call("begin", run=run, worker=b, inv="INV-ORPHAN")
    bench.check(
        "INV-RESUME",
        "the new owner begins with the step in flight",
        taken["key"] == "1.0",
        taken["key"],
    )
    bench.open("b", "c")
    result = await bench.result(run)

    begun = Counter(ids(bench.calls(event="begin", run=run), "key"))
    bench.fact("heartbeats seen before the kill", bench.observer.renewals(run))
    bench.fact("seconds from kill to takeover", round(taken["t"] - died, 2))
    bench.fact("executions of each step", dict(begun))
    bench.fact("calls on the bill", begun.total())
    bench.check(
        "INV-ORPHAN", "the orphan is taken over", taken["worker"] == b.worker_id, taken["worker"]
    )
    bench.check(
        "INV-RESUME",
        "the recorded step is not executed again, the one in flight is",
        begun == {"0.0": 1, "1.0": 2, "2.0": 1},
        dict(begun),
    )
    bench.check(
        "INV-SAME", "the report is what it would have been", result == ["a", "b", "c"], result
    )


async def stuck(bench: Bench) -> None:
    """A's step hangs without a word. A lives and beats; its work does not go on."""
    a = await bench.worker()
    run = await bench.start("tour", Tour(places=["a"], how="hang"))
    first = await bench.until_call("begin", run=run)
    await bench.worker()
    again = await bench.until(
        lambda: bench.calls(event="begin", run=run)[1:], what="taken away for lack of progress"
    )
    bench.open("a")
    result = await bench.result(run)

    alive = a.process.is_running
    bench.fact("heartbeats seen while stuck", bench.observer.renewals(run))
    bench.fact("seconds until it was taken away", round(again[0]["t"] - first["t"], 2))
    bench.fact("A is alive", alive)
    bench.check(
        "INV-LIVE",
        "a run whose owner lives but does not progress is taken away",
        alive and again[0]["fence"] > first["fence"],
        f"{first['fence']} then {again[0]['fence']}",
    )
    bench.check("INV-SAME", "the report is what it would have been", result == ["a"], result)
