"""One round: every victim has one run, a survivor has room for all, and each victim is struck.

victims start → each gets one run, whose first call the world holds → nothing but heartbeats
goes on, and is counted → a survivor starts → each victim is struck at a moment of its own →
who takes over, and when? → the calls are let go, and every run ends
"""

from __future__ import annotations

import asyncio
import random
import secrets
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from comparison.arms import Arm
from comparison.cluster import Cluster, Process
from comparison.engines import worker_command
from comparison.evidence import FaultRecord, Load
from comparison.faults import takeovers
from comparison.ledger import Begin
from comparison.meters import Meter
from comparison.sweep.point import SLOW, Spell, SpellKind
from comparison.sweep.settings import with_room
from comparison.world.client import WorldClient
from comparison.world.holds import Rule
from investigation.steps import Question
from two_workers import Engine, Run

APP = "comparison.stalling:APP"
QUESTION = "why do checkouts fail?"
AIM = 60.0  # seconds in which every victim must have a call
PATIENCE = 15.0
"""Seconds beyond the prediction after which a kill counts as never noticed."""
MARGIN = 3.0
"""Seconds beyond the prediction after which a worker that was slow has kept its run."""
SHORTEST, LONGEST = 0.1, 1.5
"""Of a spell, in leases."""
ENDS = 120.0  # seconds in which every run must end once its call is let go


@dataclass
class Stage:
    """What is up while an arm is measured."""

    engine: Engine
    env: Mapping[str, str]
    cluster: Cluster
    world: WorldClient
    meter: Meter


@dataclass(frozen=True)
class Victim:
    """A worker and the call that it waits in."""

    process: Process
    held: Begin


@dataclass(frozen=True)
class Blow:
    """What is to happen to one victim: `phase` of a heartbeat gap later, for `lasts` seconds."""

    kind: SpellKind
    phase: float
    lasts: float | None


def blows(arm: Arm, each: int, chance: random.Random) -> list[Blow]:
    """As many of each kind; spells are spread evenly over their range, so that none is missed."""
    found = [Blow("kill", chance.random(), None) for _ in range(each)]
    for kind in SLOW:
        for place in range(each):
            share = (place + chance.random()) / each
            lasts = arm.timeout * (SHORTEST + share * (LONGEST - SHORTEST))
            found.append(Blow(kind, chance.random(), lasts))
    return found


async def carry_out(stage: Stage, arm: Arm, planned: Sequence[Blow], quiet: float) -> Round:
    """One round. `quiet` is for how many seconds heartbeats are counted; 0: not at all."""
    env = {**stage.env, **arm.env}
    processes = await asyncio.gather(
        *(_worker(stage, env | with_room(arm, 1) | _stall(blow)) for blow in planned)
    )
    crew = {process.ready.result(): process for process in processes}
    runs = [f"sweep-{secrets.token_hex(4)}" for _ in planned]
    try:
        held = await _held(stage, runs)
        load = await stage.meter.over(quiet) if quiet else None
        processes.append(await _worker(stage, env | with_room(arm, len(planned))))
        spells = await asyncio.gather(
            *(
                _strike(stage, arm, blow, Victim(crew[worker], held[worker]))
                for worker, blow in zip(crew, planned, strict=True)
                if worker in held
            )
        )
        await stage.world.release_all()
        await _ended(stage.engine, runs)
    finally:
        for process in processes:
            await process.killed()
    return Round(tuple(spells), load, len(held))


@dataclass(frozen=True)
class Round:
    """What one round found; `load` is that of `runs` runs that did nothing but beat."""

    spells: tuple[Spell, ...]
    load: Load | None
    runs: int


async def _worker(stage: Stage, env: Mapping[str, str]) -> Process:
    name = f"worker-{secrets.token_hex(3)}"
    command = worker_command(stage.engine.name, APP)
    return await stage.cluster.start(name, command, env, ready=r"^worker (\S+) ready")


def _stall(blow: Blow) -> dict[str, str]:
    return {"STALL_SECONDS": f"{blow.lasts:.3f}"} if blow.kind == "stall" else {}


async def _held(stage: Stage, runs: Sequence[str]) -> dict[str, Begin]:
    """Start the runs and hold the first call of each: by worker, its call. A worker has one."""
    holds = [await stage.world.arm(Rule(at="begin", kind="model", run=run)) for run in runs]
    payload = Question(text=QUESTION).model_dump(mode="json")
    for run in runs:
        await stage.engine.start(Run(run_id=run, kind="investigation", payload=payload))
    calls = await asyncio.gather(*(stage.world.hit(hold, timeout=AIM) for hold in holds))
    await stage.world.catch_up()
    return {call.identity.worker: call for call in calls if call is not None}


async def _strike(stage: Stage, arm: Arm, blow: Blow, victim: Victim) -> Spell:
    # Not a wait for a condition: this is the randomised part of the experiment.
    await asyncio.sleep(blow.phase * arm.gap)
    before = time.monotonic_ns()
    await _begin(blow, victim.process)
    fault = _record(blow, victim.held, before, time.monotonic_ns())
    expected = arm.predict("kill")[1]
    if blow.lasts is None:
        taken = await _taken_over(stage.world, fault, expected + PATIENCE)
    else:
        await asyncio.sleep(blow.lasts)
        victim.process.resume()
        taken = await _taken_over(stage.world, fault, max(0.0, expected - blow.lasts) + MARGIN)
    watched = (time.monotonic_ns() - fault.after_ns) / 1e9
    return Spell(kind=blow.kind, lasted=blow.lasts, taken=taken, watched=watched)


async def _begin(blow: Blow, victim: Process) -> None:
    match blow.kind:
        case "kill":
            await victim.killed()
        case "pause":
            await victim.stopped()
        case "stall":
            victim.send(signal.SIGUSR1)
            async with asyncio.timeout(AIM):
                while "stalling for" not in victim.log.read_text():
                    await asyncio.sleep(0.005)  # the worker says so in its log, to nobody else


def _record(blow: Blow, held: Begin, before: int, after: int) -> FaultRecord:
    who = held.identity
    return FaultRecord(
        number=0,
        kind=blow.kind,
        point="begin",
        phase=blow.phase,
        victim=who.worker,
        held_key=who.key,
        before_ns=before,
        after_ns=after,
        in_flight=(who.key,),
        landed=True,
    )


async def _taken_over(world: WorldClient, fault: FaultRecord, timeout: float) -> float | None:
    """Seconds from the fault until somebody else called for the victim's step, or None."""
    with suppress(TimeoutError):
        found = await world.until(
            lambda ledger: takeovers(ledger.calls.values(), fault) or None, timeout=timeout
        )
        return (min(found.values()) - fault.after_ns) / 1e9
    return None


async def _ended(engine: Engine, runs: Sequence[str]) -> None:
    """Wait for every run's end, however it ended: the next round must find nothing to do."""
    results = (engine.result(run, timeout=ENDS) for run in runs)
    await asyncio.gather(*results, return_exceptions=True)
