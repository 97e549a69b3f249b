"""Kill workers in the middle of an agent's work; its result must be what it would have been.

The oracle is the same agent on the same engine without a fault. That asks one thing of the agent:
its effects give the same results for the same steps.
"""

from __future__ import annotations

import random

import pytest
from pydantic import JsonValue

from comparison.chaos.cluster import Cluster
from comparison.chaos.plugin import TOUR
from two_workers import load_app


async def test_an_agent_survives_the_death_of_its_workers(
    cluster: Cluster,
    chaos_app: str,
    chaos_payload: JsonValue,
    request: pytest.FixtureRequest,
) -> None:
    kind = load_app(chaos_app).kind
    cluster.app = chaos_app
    kills = int(request.config.getoption("--two-workers-kills"))
    moments = random.Random(request.config.getoption("--two-workers-seed"))
    if chaos_app == TOUR and isinstance(chaos_payload, list):
        cluster.open(*map(str, chaos_payload))

    cluster.start_worker()
    calm = await cluster.start_run(kind, chaos_payload)
    expected = await cluster.engine.result(calm, timeout=600)
    steps = await recorded(cluster, calm)
    assert steps, "an agent without a recorded step cannot be resumed, so nothing would be tested"

    broken = await cluster.start_run(kind, chaos_payload)
    places = sorted(moments.choices(range(len(steps)), k=kills))
    killed = 0
    for place in places:
        if not await reached(cluster, broken, place):
            break  # it ended first: what is left to kill did not hold its work
        cluster.workers[-1].kill()
        cluster.workers[-1].wait()
        killed += 1
        cluster.start_worker()

    assert await cluster.engine.result(broken, timeout=600) == expected
    assert await recorded(cluster, broken) == steps, "the same steps, each recorded once, in order"
    assert killed > 0, "no worker was killed while the run was open, so nothing was tested"


async def recorded(cluster: Cluster, run_id: str) -> list[tuple[str, str]]:
    """Place and kind of each recorded step."""
    records = await cluster.engine.steps(run_id)
    return [(record.key.rpartition("/")[2], record.kind) for record in records]


async def reached(cluster: Cluster, run_id: str, count: int) -> bool:
    """Wait until `count` steps are recorded. False if the run ended by then."""
    while len(await cluster.engine.steps(run_id)) < count:
        if (await cluster.engine.get(run_id)).state.is_final:
            return False
    return not (await cluster.engine.get(run_id)).state.is_final
