"""A server, a world and workers for the crowd of one arm, and what it leaves behind.

All of that is its own, so what it shares with the campaign beside it is only the machine.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from comparison.arms import Arm
from comparison.cluster import Cluster
from comparison.crowd.app import APP
from comparison.crowd.crowd import Crowd
from comparison.crowd.notes import Errand, Notes, Rest
from comparison.crowd.rest import at_rest
from comparison.crowd.script import PLACES, POISON, WORKERS, has_crowd, members, settings_of
from comparison.crowd.signals import Sender
from comparison.dumps import Records, collect
from comparison.engines import plugin_of
from comparison.evidence import Case, Clock, End, Evidence
from comparison.ledger import Index
from comparison.plan import stream
from comparison.runs import Runs
from comparison.workers import Workers
from comparison.world.client import app_env, open_world
from two_workers.engines import server_for

MODEL_LATENCY = (0.1, 0.4)
"""Seconds."""


@asynccontextmanager
async def beside(
    arm: Arm, seed: int, directory: Path, clock: Clock, *, wanted: bool, after: asyncio.Event
) -> AsyncIterator[Callable[[], Awaitable[Case | None]]]:
    """A crowd on its way while the block goes on. What is yielded waits for its case.

    It begins `after` the fault-free twin, whose times must not be those of a machine that a crowd
    is busy with: what faults cost is measured against them.

    None for an arm without a crowd, or when none is `wanted`. Leaving the block early ends the
    crowd in order.
    """
    if not (wanted and has_crowd(arm)):
        yield _nobody
        return

    async def gathered() -> Case:
        await after.wait()
        return await gather(arm, seed, directory, clock)

    task = asyncio.create_task(gathered())

    async def ended() -> Case | None:
        return await task

    try:
        yield ended
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _nobody() -> Case | None:
    return None


async def gather(arm: Arm, seed: int, directory: Path, clock: Clock) -> Case:
    """One crowd, start to end. Its evidence is under `directory` afterwards.

    Raises `EngineUnavailable` if its server does not start.
    """
    plugin = plugin_of(arm.engine)
    base = {**os.environ, **arm.env, **settings_of(arm)}
    with tempfile.TemporaryDirectory(prefix="two-workers-", ignore_cleanup_errors=True) as data:
        async with (
            server_for(plugin, base, directory=Path(data)) as env,
            Cluster.open(directory / "logs") as cluster,
            open_world(
                cluster, directory / "ledger.jsonl", seed=seed, model_latency=MODEL_LATENCY
            ) as world,
            plugin.connect(plugin.settings(env)) as engine,
            Workers.of(
                cluster,
                arm.engine,
                {**env, **app_env(world.url)},
                count=WORKERS,
                app="comparison.crowd.app:APP",
                proxied=False,
            ) as workers,
        ):
            payloads = [member.errand.model_dump(mode="json") for member in (*members(), POISON)]
            runs = Runs(engine, APP.kind, payloads)
            sender = Sender(engine, world, runs, stream(seed, "words"))
            crowd = Crowd(
                arm, engine, world, cluster, workers, runs, sender, before=await engine.limits()
            )
            ends, rest = await _carried_out(crowd, env)
            await world.catch_up()
            logs = directory / "logs"
            records = await collect(engine, env, ends, world.ledger, clock, logs)
            evidence = _evidence(crowd, clock, ends, records, await _notes(crowd, rest))
            case = Case(evidence=evidence, calls=Index(world.ledger))
            case.write(directory)
    return case


async def _carried_out(crowd: Crowd, env: Mapping[str, str]) -> tuple[list[End], Rest]:
    """How the runs ended, and the engine at rest, while its workers still live."""
    try:
        await crowd.carry_out()
        return await crowd.runs.ends(), await at_rest(crowd.engine, env)
    finally:
        await crowd.engine.set_limits(crowd.before)
        await crowd.runs.close()


async def _notes(crowd: Crowd, rest: Rest) -> Notes:
    views = {run: await crowd.engine.get(run) for run in crowd.members}
    return Notes(
        errands=tuple(
            Errand(
                run=run,
                tenant=member.tenant,
                acts=member.acts,
                budget=member.budget,
                cost=views[run].cost,
            )
            for run, member in crowd.members.items()
        ),
        poison=next(run for run, member in crowd.members.items() if member is POISON),
        sent=tuple(crowd.sender.sent),
        limits=tuple(crowd.limits),
        places=WORKERS * PLACES,
        rest=rest,
    )


def _evidence(
    crowd: Crowd, clock: Clock, ends: Sequence[End], records: Records, notes: Notes
) -> Evidence:
    return Evidence(
        arm=crowd.arm.name,
        engine=crowd.arm.engine,
        settings={**crowd.arm.env, **settings_of(crowd.arm)},
        clock=clock.checked(),
        starts=tuple(crowd.runs.starts),
        ends=tuple(ends),
        faults=tuple(crowd.faults),
        cancellations=(),
        ownerships=records.ownerships,
        writes=records.writes,
        refused_writes=records.refused_writes,
        healed_ns=max((fault.resumed_ns or 0 for fault in crowd.faults), default=0),
        converged_ns=crowd.converged_ns,
        convergence_bound=crowd.bound,
        server=records.server,
        crowd=notes,
    )
