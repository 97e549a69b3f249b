"""How much at a time, and for how much: limits, budget, fairness, overload."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from comparison.mapping.scenarios.bench import Bench
from comparison.mapping.tour.steps import Tour
from two_workers import Limits

ACTIVE, PER_TENANT, CALLS = 3, 2, 2
SILENCE = 1.0
"""Seconds to wait for what should not come; nothing would say that it does not."""


async def limits(bench: Bench) -> None:
    """Two workers with room for eight runs each, under limits that all of them share."""
    await bench.engine.set_limits(Limits(max_active=ACTIVE, max_active_per_tenant=PER_TENANT))
    bench.did("", f"limits: {ACTIVE} active runs, {PER_TENANT} for each tenant")
    owner = {
        await bench.start("tour", Tour(places=["x"]), tenant=tenant): tenant
        for tenant in ("red", "blue") * 4
    }
    await bench.worker("TOUR", "FAN_OUT")
    await bench.worker("TOUR", "FAN_OUT")
    await _fill(bench, "x", list(owner), room=ACTIVE)
    await asyncio.gather(*(bench.result(run) for run in owner))
    runs = _peak(bench.calls(), lambda call: call["run"])
    tenants = {
        t: _peak(bench.calls(), lambda c: c["run"], only=[r for r in owner if owner[r] == t])
        for t in ("red", "blue")
    }

    calls = await _most_model_calls(bench)
    bench.fact("most runs at a time", runs)
    bench.fact("most runs of a tenant at a time", max(tenants.values()))
    bench.fact("most model calls at a time", calls)
    bench.check(
        "INV-CAP", f"at most {ACTIVE} active runs, and the room is used", runs == ACTIVE, runs
    )
    bench.check(
        "INV-CAP",
        f"at most {PER_TENANT} for each tenant",
        max(tenants.values()) == PER_TENANT,
        tenants,
    )
    bench.check(
        "INV-CAP", f"at most {CALLS} model calls, and the room is used", calls == CALLS, calls
    )


async def _most_model_calls(bench: Bench) -> int:
    """Three runs that fan out, on the same two workers, under a limit of model calls alone."""
    await bench.engine.set_limits(Limits(pools={"model": CALLS}))
    bench.did("", f"limits: {CALLS} model calls")
    crowd = [await bench.start("fan-out", Tour(places=["y", "y", "y"])) for _ in range(3)]
    await _fill(bench, "y", crowd, room=CALLS)
    await asyncio.gather(*(bench.result(run) for run in crowd))
    await bench.engine.set_limits(Limits())
    return _peak(bench.calls(), lambda call: (call["run"], call["key"]), only=crowd)


async def _fill(bench: Bench, place: str, runs: Sequence[str], *, room: int) -> None:
    """Let calls gather at `place` until the room is used, give more of them time to come, open."""
    await bench.until(
        lambda: len([c for c in bench.calls(event="begin") if c["run"] in runs]) >= room,
        what=f"{room} calls at {place}",
    )
    await asyncio.sleep(SILENCE)
    bench.open(place)


async def budget(bench: Bench) -> None:
    """Each step may cost 1,000 micro-dollars; the run may cost 2,500."""
    await bench.worker()
    plan = Tour(places=["a", "b", "c"], how="answer", price=1000)
    run = await bench.start("tour", plan, budget=2500)
    end = await bench.result(run)
    view = await bench.engine.get(run)
    begun = bench.calls(event="begin", run=run)
    bench.fact("calls begun", len(begun))
    bench.fact("cost", view.cost)
    bench.fact("the run ends", str(end))
    bench.check(
        "INV-BUDGET",
        "the call that could exceed the budget does not begin",
        len(begun) == 2 and view.cost <= 2500,
        f"{len(begun)} calls, {view.cost}",
    )
    bench.check("INV-BUDGET", "the run fails, and says why", "BudgetExceeded" in str(end), end)


async def fairness(bench: Bench) -> None:
    """Sixteen runs of one tenant wait when two of another arrive; one worker, one at a time."""
    if bench.engine.name == "hand_rolled":  # its turns are in force while any limit is set
        await bench.engine.set_limits(Limits(max_active_per_tenant=50))
        bench.did("", "limits: 50 for each tenant, so that tenants take turns")
    big = [
        await bench.start("tour", Tour(places=["a"], how="brief"), tenant="big") for _ in range(16)
    ]
    small = [
        await bench.start("tour", Tour(places=["a"], how="brief"), tenant="small") for _ in range(2)
    ]
    bench.story = small[0]
    await bench.worker(HAND_ROLLED_CONCURRENCY="1", TEMPORAL_VERSION_CONCURRENCY="1")
    await asyncio.gather(*(bench.result(run) for run in (*big, *small)))
    await bench.engine.set_limits(Limits())
    order = [call["run"] in small for call in bench.calls(event="begin")]
    places = [place for place, is_small in enumerate(order, start=1) if is_small]
    bench.fact("places of the small tenant's runs", places)
    bench.fact("runs", len(order))
    bench.check(
        "INV-FAIR",
        "the small tenant does not wait for the big one's backlog",
        max(places) <= len(order) // 2,
        places,
    )


async def overload(bench: Bench) -> None:
    """Thirty runs arrive at once for a worker with two places."""
    slots = 2
    await bench.worker(HAND_ROLLED_CONCURRENCY=f"{slots}", TEMPORAL_VERSION_CONCURRENCY=f"{slots}")
    plan = Tour(places=["a"], how="brief")
    runs = [await bench.start("tour", plan) for _ in range(30)]
    ends = await asyncio.gather(*(bench.result(run) for run in runs))
    waits = sorted(call["t"] for call in bench.calls(event="begin"))
    peak = _peak(bench.calls(), lambda call: call["run"])
    bench.fact("most runs at a time", peak)
    bench.fact("seconds between the first and the last begin", round(waits[-1] - waits[0], 2))
    bench.check("INV-CAP", "a worker takes no more than it has places for", peak <= slots, peak)
    bench.check("INV-LIVE", "every run ends", ends == [["a"]] * len(runs), len(ends))


def _peak(calls: Iterable[dict[str, Any]], name: Any, *, only: Sequence[str] | None = None) -> int:
    """The most things that were in flight at the same moment."""
    flying: set[Any] = set()
    most = 0
    for call in calls:
        if only is not None and call["run"] not in only:
            continue
        if call["event"] == "begin":
            flying.add(name(call))
        else:
            flying.discard(name(call))
        most = max(most, len(flying))
    return most
