"""What if it fails, or its code changes: retry, poison, deploy."""

from __future__ import annotations

from itertools import pairwise

from comparison.mapping.scenarios.bench import Bench, ids
from comparison.mapping.tour.steps import Tour
from two_workers import RunState

MOST_DEATHS = 6
"""A run that has killed so many workers will not stop by itself."""


async def retry(bench: Bench) -> None:
    """A step fails twice and then succeeds."""
    await bench.worker()
    run = await bench.start("tour", Tour(places=["a", "b"], how="fail:2"))
    result = await bench.result(run)
    begun = bench.calls(event="begin", run=run, key="0.0")
    gaps = [round(later["t"] - one["t"], 2) for one, later in pairwise(begun)]
    bench.fact("executions of the failing step", len(begun))
    bench.fact("seconds between them", gaps)
    bench.fact("calls on the bill", len(bench.calls(event="begin", run=run)))
    bench.check(
        "INV-RESUME",
        "each step is tried until it succeeds, then never again",
        len(begun) == 3 and result == ["a", "b"],
        ids(begun, "attempt"),
    )


async def poison(bench: Bench) -> None:
    """A run kills every worker that takes it; an innocent one is in the same process."""
    await bench.worker()
    innocent = await bench.start("tour", Tour(places=["b"]))
    await bench.until_call("begin", run=innocent)
    poisonous = bench.story = await bench.start("tour", Tour(places=["a"], how="die"))
    end, deaths = await _supervise(bench, poisonous)
    bench.open("b")
    result = await bench.result(innocent)
    bench.fact("workers killed", deaths)
    bench.fact("the poisonous run ends", str(end))
    bench.fact("the innocent run ends", result)
    bench.check("INV-BLAME", "the poisonous run is failed", str(end).startswith("failed"), end)
    if bench.engine.name == "hand_rolled":
        # A count of lost workers cannot tell them apart: on Temporal it depends on who shares one.
        bench.check("INV-BLAME", "the innocent one is not", result == ["b"], result)


async def _supervise(bench: Bench, run: str) -> tuple[object, int]:
    """Keep two workers alive, as a supervisor would, until the run has ended."""
    while not (await bench.engine.get(run)).state.is_final:
        if sum(not w.process.is_running for w in bench.workers) >= MOST_DEATHS:
            return "never", MOST_DEATHS
        alive = [w for w in bench.workers if w.process.is_running]
        for dead in [w for w in bench.workers if not w.process.is_running]:
            bench.mourn(dead)
        if len(alive) < 2:
            await bench.worker()
        await bench.breathe()
    return await bench.result(run), sum(not w.process.is_running for w in bench.workers)


async def deploy(bench: Bench) -> None:
    """The agent's code changes while a run waits for a person."""
    a = await bench.worker("APPROVAL")
    run = await bench.start("approval", Tour(places=["a", "b"]))
    await bench.until_state(run, RunState.WAITING)
    await bench.terminate(a)
    b = await bench.worker("APPROVAL_CHANGED")
    bench.did(run, "worker B has the new code, which asks for another first step")
    await bench.engine.signal(run, "answer", "yes", signal_id="answer-1")
    bench.did(run, "signal answer-1: yes")
    await bench.until(
        lambda: bench.observer.mismatches(run), what="the mismatch is noticed", inv="INV-RESUME"
    )
    meanwhile = (await bench.engine.get(run)).state
    bench.did(run, f"the new code does not fit; the run is {meanwhile}")
    await bench.terminate(b)
    await bench.worker("APPROVAL")
    bench.did(run, "worker C has the old code")
    result = await bench.result(run)
    begun = bench.calls(event="begin", run=run)
    bench.fact("state while only the new code is there", str(meanwhile))
    bench.fact("steps that the new code executed", sum(c["worker"] == b.worker_id for c in begun))
    bench.fact("result", result)
    bench.check(
        "INV-RESUME",
        "code that does not fit executes nothing",
        all(c["worker"] != b.worker_id for c in begun),
        ids(begun, "key"),
    )
    bench.check(
        "INV-SAME",
        "the run neither fails nor ends until code that fits comes",
        not meanwhile.is_final and result == ["a", "yes", "b"],
        result,
    )
