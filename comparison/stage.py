"""Set the stage for one arm, run its campaign, and collect what it leaves behind.

Each arm gets a server, a world and workers of its own. Nothing runs beside it but its crowd; the
other engine's server is not up. Everything is torn down before the next arm begins.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from comparison.arms import Arm
from comparison.breakers.base import Scene
from comparison.breakers.catalogue import PLAIN_APP as APP
from comparison.breakers.catalogue import possible, worker_app
from comparison.breakers.servers import arm_server
from comparison.campaign import CONVERGENCE, Campaign, Say
from comparison.cluster import Cluster
from comparison.crowd.stage import beside
from comparison.dumps import Records, collect
from comparison.engines import plugin_of
from comparison.evidence import Case, Clock, End, Evidence
from comparison.ledger import Index, Ledger
from comparison.meters import meter_of
from comparison.plan import Plan
from comparison.pressure import Pressure
from comparison.runs import Runs
from comparison.workers import Workers
from comparison.world.client import app_env, open_world
from investigation.steps import Question
from two_workers import load_app

MODEL_LATENCY = (0.15, 0.6)
TOOL_LATENCY = (0.02, 0.15)
"""Seconds; drawn for each call from its place and input."""


async def run_arm(arm: Arm, plan: Plan, directory: Path, say: Say, *, crowded: bool = True) -> Case:
    """One arm, start to end, with its crowd or alone. Its evidence is under `directory` afterwards.

    Raises `EngineUnavailable` if its server does not start.
    """
    plugin = plugin_of(arm.engine)
    clock, pressure = Clock.now(), Pressure.now()
    say(f"starting the server of {arm.engine}")
    crowd_place, twin_over = directory / "crowd", asyncio.Event()
    async with (
        beside(arm, plan.seed, crowd_place, clock, wanted=crowded, after=twin_over) as crowd_ended,
        arm_server(arm) as (env, server),
        Cluster.open(directory / "logs") as cluster,
        open_world(
            cluster,
            directory / "ledger.jsonl",
            seed=plan.seed,
            model_latency=MODEL_LATENCY,
            tool_latency=TOOL_LATENCY,
        ) as world,
        plugin.connect(plugin.settings(env)) as engine,
    ):
        plan = possible(plan, arm, say, ours=server is not None)
        payloads = [Question(text=q).model_dump(mode="json") for q in plan.questions]
        runs, meter = Runs(engine, load_app(APP).kind, payloads), meter_of(arm.engine, env)
        settings = {**env, **app_env(world.url)}
        async with _workers(cluster, arm, plan, settings, proxied=server is not None) as workers:
            scene = Scene(arm.engine, env, server, meter, world, workers)
            campaign = Campaign(arm, plan, scene, runs, say, twin_over=twin_over)
            ends = await _carried_out(campaign)
        await world.catch_up()
        ledger = world.ledger
        records = await collect(engine, env, ends, ledger, clock, directory / "logs")
        busy = pressure.since()
        if crowded:
            say("waiting for the crowd's last runs")
        crowd = await crowd_ended()
        case = _case(campaign, records, tuple(ends), ledger, clock.checked(), busy)
        case.write(directory)
    return case.model_copy(update={"crowd": crowd})


def _workers(
    cluster: Cluster, arm: Arm, plan: Plan, env: Mapping[str, str], *, proxied: bool
) -> AbstractAsyncContextManager[Workers]:
    """Workers to which the plan's faults can be brought."""
    app, extra = worker_app(plan.kinds)
    env = {**env, **extra}
    return Workers.of(cluster, arm.engine, env, count=plan.workers, app=app, proxied=proxied)


async def _carried_out(campaign: Campaign) -> list[End]:
    """How the runs of a campaign ended, once all of it is over."""
    try:
        async with campaign.scene.meter.during("whole"):
            await campaign.carry_out()
        return await campaign.runs.ends()
    finally:
        await campaign.runs.close()


def _case(
    campaign: Campaign,
    records: Records,
    ends: tuple[End, ...],
    ledger: Ledger,
    clock: Clock,
    cpu_pressure: float | None,
) -> Case:
    arm = campaign.arm
    evidence = Evidence(
        arm=arm.name,
        engine=arm.engine,
        settings=dict(arm.env),
        clock=clock,
        starts=tuple(campaign.runs.starts),
        ends=ends,
        faults=tuple(campaign.faults),
        cancellations=tuple(campaign.cancellations),
        ownerships=records.ownerships,
        writes=records.writes,
        refused_writes=records.refused_writes,
        late_records=campaign.workers.late_records(),
        healed_ns=campaign.healed_ns,
        converged_ns=campaign.converged_ns,
        convergence_bound=CONVERGENCE,
        server=records.server,
        cpu_pressure=cpu_pressure,
        loads=tuple(campaign.scene.meter.loads),
        actions=records.actions,
    )
    return Case(evidence=evidence, calls=Index(ledger))
