"""Kill workers in the middle of an agent's work; its result must be what it would have been.

The oracle is the same agent on the same engine without a fault. That asks one thing of the agent:
its effects give the same results for the same steps.
"""

from __future__ import annotations

import random

import pytest

from comparison.chaos.cluster import Cluster
from comparison.chaos.plugin import TOUR, Options
from two_workers import load_app

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_an_agent_survives_the_death_of_its_workers(
    cluster: Cluster, chaos_options: Options
) -> None:
    payload, cluster.app = chaos_options.payload, chaos_options.app
    kind = load_app(cluster.app).kind
    if cluster.app == TOUR and isinstance(payload, list):
        cluster.open(*map(str, payload))

    cluster.start_worker()
    calm = await cluster.start_run(kind, payload)
    expected = await cluster.result(calm)
    steps = await recorded(cluster, calm)
    assert steps, "an agent without a recorded step cannot be resumed, so nothing would be tested"

    broken = await cluster.start_run(kind, payload)
    moments = random.Random(chaos_options.seed)
    places = sorted(moments.choices(range(len(steps)), k=chaos_options.kills))
    killed = 0
    for place in places:
        if not await reached(cluster, broken, place):
            break  # it ended first: what is left to kill did not hold its work
        cluster.workers[-1].kill()
        cluster.workers[-1].wait()
        killed += 1
        cluster.start_worker()

    assert await cluster.result(broken) == expected
    assert await recorded(cluster, broken) == steps, "the same steps, each recorded once, in order"
    assert killed > 0, "no worker was killed while the run was open, so nothing was tested"


async def recorded(cluster: Cluster, run_id: str) -> list[tuple[str, str]]:
    """Place and kind of each recorded step."""
    records = await cluster.engine.steps(run_id)
    return [(record.key.rpartition("/")[2], record.kind) for record in records]


async def reached(cluster: Cluster, run_id: str, count: int) -> bool:
    """Wait until `count` steps are recorded. False if the run ended by then."""
    while len(await cluster.engine.steps(run_id)) < count:
        cluster.expect_alive()
        if (await cluster.engine.get(run_id)).state.is_final:
            return False
    return not (await cluster.engine.get(run_id)).state.is_final
