"""Set the stage for one arm, run its campaign, and collect what it leaves behind.

Each arm gets a server, a world and workers of its own, and nothing else runs beside it: the other
engine's server is not up. Everything is torn down before the next arm begins.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from comparison.arms import Arm
from comparison.campaign import CONVERGENCE, Campaign, Say
from comparison.cluster import Cluster
from comparison.dumps import Records, collect
from comparison.engines import plugin_of
from comparison.evidence import Case, Clock, End, Evidence
from comparison.ledger import Index, Ledger
from comparison.plan import Plan
from comparison.runs import Runs
from comparison.workers import Workers
from comparison.world.client import WorldClient
from investigation.steps import Question
from two_workers import load_app
from two_workers.engines import server_for

APP = "investigation.app:APP"
MODEL_LATENCY = (0.15, 0.6)
TOOL_LATENCY = (0.02, 0.15)
"""Seconds; drawn for each call from its place and input."""


async def run_arm(arm: Arm, plan: Plan, directory: Path, say: Say) -> Case:
    """One arm, start to end. Its evidence is under `directory` afterwards.

    Raises `EngineUnavailable` if its server does not start.
    """
    plugin = plugin_of(arm.engine)
    clock = Clock.now()
    say(f"starting the server of {arm.engine}")
    base = {**os.environ, **arm.env}
    with tempfile.TemporaryDirectory(prefix="two-workers-", ignore_cleanup_errors=True) as data:
        async with (
            server_for(plugin, base, directory=Path(data)) as env,
            Cluster.open(directory / "logs") as cluster,
            world(cluster, directory / "ledger.jsonl", plan.seed) as (url, world_client),
            plugin.connect(plugin.settings(env)) as engine,
        ):
            env = {**env, **app_env(url)}
            app = load_app(APP)
            payloads = [Question(text=q).model_dump(mode="json") for q in plan.questions]
            runs = Runs(engine, app.kind, list(payloads))
            workers = Workers(cluster, arm.engine, env, plan.workers, APP)
            campaign = Campaign(arm, plan, world_client, workers, runs, say)
            try:
                await campaign.carry_out()
                ends = await runs.ends()
            finally:
                await runs.close()
            await world_client.catch_up()
            ledger = world_client.ledger
            records = await collect(arm.engine, env, ends, ledger, clock, directory / "logs")
            case = _case(campaign, env, records, tuple(ends), ledger, clock.checked())
            case.write(directory)
    return case


@asynccontextmanager
async def world(
    cluster: Cluster, ledger: Path, seed: int, *, instant: bool = False
) -> AsyncIterator[tuple[str, WorldClient]]:
    """A world in a process of its own, and the harness's view of it. `instant`: no latencies."""
    model, tool = ((0.0, 0.0), (0.0, 0.0)) if instant else (MODEL_LATENCY, TOOL_LATENCY)
    command = [
        *(sys.executable, "-m", "comparison.world", "--ledger", str(ledger)),
        *("--seed", str(seed)),
        *("--model-latency", f"{model[0]}:{model[1]}", "--tool-latency", f"{tool[0]}:{tool[1]}"),
    ]
    process = await cluster.start("world", command, {}, ready=r"^world (\S+)")
    url = process.ready.result()
    async with WorldClient.following(url) as client:
        yield url, client


def app_env(url: str) -> dict[str, str]:
    """The environment in which the app under test meets the world and nothing else."""
    return {
        "INVESTIGATION_IDENTIFY_CALLS": "true",
        "INVESTIGATION_MODEL_BASE_URL": f"{url}/v1",
        "INVESTIGATION_TOOLS_URL": f"{url}/tools",
        "INVESTIGATION_REPORTS_URL": f"{url}/reports",
    }


def _case(
    campaign: Campaign,
    env: Mapping[str, str],
    records: Records,
    ends: tuple[End, ...],
    ledger: Ledger,
    clock: Clock,
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
        healed_ns=campaign.healed_ns,
        converged_ns=campaign.converged_ns,
        convergence_bound=CONVERGENCE,
        server=records.server,
    )
    return Case(evidence=evidence, calls=Index(ledger))
