"""`two-workers sweep`: the same arms under several leases.

results/sweep/<utc>-<seed>/
    <arm>/              ledger.jsonl, logs/
    sweep.json          every spell with its length and outcome, each lease's settings, environment
    sweep.md            the table
    sweep.svg           the three curves over one axis
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from comparison.arms import Arm, find_arm
from comparison.cluster import Cluster
from comparison.engines import plugin_of
from comparison.environment import describe
from comparison.meters import ACTION, ROWS, WRITES, meter_of
from comparison.plan import arm_order, stream
from comparison.progress import Progress
from comparison.sweep.point import Point
from comparison.sweep.round import Round, Stage, blows, carry_out
from comparison.sweep.settings import with_lease
from comparison.sweep.show import to_markdown, to_svg, to_terminal
from comparison.world.client import app_env, open_world
from two_workers import BadInput
from two_workers.engines import server_for

EACH = 2
"""Victims of each kind in a round."""
LEAST_QUIET = 8.0
"""Seconds for which heartbeats are counted, or two leases if that is more."""
HEARTBEATS = {
    # A heartbeat of a worker changes its own row, whatever runs it renews.
    "hand_rolled": f"{ROWS}workers",
    "story": f"{ROWS}runs",
    "temporal": f"{ACTION}grpc_RecordActivityTaskHeartbeat",
}


async def sweep(
    *,
    arms: Sequence[str],
    leases: Sequence[float],
    rounds: int,
    seed: int,
    results: Path,
    each: int = EACH,
) -> list[Point]:
    """Every lease on every arm, in random order of arms. Raises `BadInput`, `EngineUnavailable`."""
    if rounds < 1:
        raise BadInput(f"--rounds {rounds}: expected at least 1")
    if not leases or len(set(leases)) != len(leases):
        raise BadInput("--lease: expected different seconds, as in 1,2,5")
    if not arms or len(set(arms)) != len(arms):
        raise BadInput(f"--arm: expected different arms, found {', '.join(arms) or 'none'}")
    matched = {name: [with_lease(find_arm(name), lease) for lease in leases] for name in arms}
    directory = results / "sweep" / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{seed}"
    found: dict[str, list[Point]] = {}
    progress = Progress(Console())
    with progress.live():
        for name in arm_order(arms, seed):
            say = progress.within(name)
            say("starting its server")
            async with _stage(find_arm(name), directory / name, seed) as stage:
                found[name] = [
                    await _point(stage, arm, rounds, each, seed, say) for arm in matched[name]
                ]
    points = [point for name in arms for point in found[name]]
    _write(directory, points, seed)
    console = Console()
    to_terminal(points, console)
    console.print(f"\nEverything is in {directory}", soft_wrap=True)
    return points


@asynccontextmanager
async def _stage(arm: Arm, directory: Path, seed: int) -> AsyncIterator[Stage]:
    """The arm's own server, a world, and a client; workers come with each round."""
    plugin = plugin_of(arm.engine)
    with tempfile.TemporaryDirectory(prefix="two-workers-", ignore_cleanup_errors=True) as data:
        async with (
            server_for(plugin, {**os.environ, **arm.env}, directory=Path(data)) as env,
            Cluster.open(directory / "logs") as cluster,
            open_world(cluster, directory / "ledger.jsonl", seed=seed) as world,
            plugin.connect(plugin.settings(env)) as engine,
        ):
            meter = meter_of(arm.engine, env)
            yield Stage(engine, {**env, **app_env(world.url)}, cluster, world, meter)


async def _point(
    stage: Stage, arm: Arm, rounds: int, each: int, seed: int, say: Callable[[str], None]
) -> Point:
    # The same blows on every arm, so that leases are compared in pairs.
    chance = stream(seed, f"sweep {arm.timeout}")
    done: list[Round] = []
    for number in range(rounds):
        quiet = max(LEAST_QUIET, 2 * arm.timeout) if number == 0 else 0.0
        done.append(await carry_out(stage, arm, blows(arm, each, chance), quiet))
        say(f"lease {arm.timeout:g} s, round {number + 1} of {rounds}")
    return Point(
        arm=arm.name,
        lease=arm.timeout,
        gap=arm.gap,
        predicted=arm.predict("kill"),
        spells=tuple(spell for round_ in done for spell in round_.spells),
        heartbeats=_each_minute(done[0], HEARTBEATS[arm.engine]),
        writes=_each_minute(done[0], WRITES),
    )


def _each_minute(quiet: Round, name: str) -> float | None:
    """How often something happened in a minute for each run; None where it is not counted."""
    if quiet.load is None or not quiet.runs or name not in quiet.load.counts:
        return None
    return quiet.load.counts[name] / quiet.runs / quiet.load.seconds * 60


def _write(directory: Path, points: Sequence[Point], seed: int) -> None:
    everything = {
        "seed": seed,
        "environment": describe(),
        "points": [asdict(point) | {"settings": _settings(point)} for point in points],
    }
    (directory / "sweep.json").write_text(json.dumps(everything, indent=1))
    (directory / "sweep.md").write_text(to_markdown(points))
    (directory / "sweep.svg").write_text(to_svg(points))


def _settings(point: Point) -> dict[str, str]:
    return dict(with_lease(find_arm(point.arm), point.lease).env)
