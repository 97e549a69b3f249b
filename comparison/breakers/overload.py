"""Overload: two investigations arrive for each one that ends, with limits in force or without.

Tied to the ends, the arrivals are twice the capacity on a machine of any speed, for as long as the
load lasts. The ledger says how many calls were at work at once, and what that cost; the runs'
own times say how long they waited for their first call.

An engine's limits bound what is *at work*: calls in flight, and so the rate at which money is
spent. They do not refuse at the door, so the queue grows with them too, and its age is reported
in both cases. (The ladder's last rung shows a door that refuses.)
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from comparison.arms import Arm
from comparison.breakers.catalogue import PLAIN_APP
from comparison.breakers.servers import arm_server
from comparison.cluster import Cluster
from comparison.engines import plugin_of
from comparison.ledger import Ledger
from comparison.workers import Workers
from comparison.world.client import app_env, open_world
from investigation.steps import Question
from two_workers import Engine, Limits, Run

WORKERS = 2
QUESTION = "Why do checkouts fail?"
LATENCY = (0.05, 0.15)
"""Seconds of a call."""
WITHOUT, WITH = Limits(), Limits(max_active=2, pools={"model": 1})
PATIENCE = 120.0
"""Seconds in which the runs at work must make room for the next arrival."""


@dataclass(frozen=True)
class Overload:
    """One load and what became of it. Ages in seconds, money in micro-dollars."""

    limits: Limits
    arrivals: int
    most_runs_at_work: int
    most_model_calls_at_once: int
    age_first_quarter: float
    age_last_quarter: float
    micro_usd: int
    seconds: float

    @property
    def micro_usd_per_second(self) -> float:
        """How fast the money went."""
        return self.micro_usd / self.seconds

    @property
    def exceeded(self) -> bool:
        """True when more was at work than the limits in force allow."""
        runs, calls = self.limits.max_active, self.limits.pools.get("model")
        return (runs is not None and self.most_runs_at_work > runs) or (
            calls is not None and self.most_model_calls_at_once > calls
        )


async def overload(arm: Arm, directory: Path, limits: Limits, *, arrivals: int = 24) -> Overload:
    """Load an arm at twice its capacity. Raises `TimeoutError` if it stands still."""
    plugin = plugin_of(arm.engine)
    async with (
        arm_server(arm) as (env, _),
        Cluster.open(directory / "logs") as cluster,
        open_world(
            cluster,
            directory / "ledger.jsonl",
            seed=1,
            model_latency=LATENCY,
            tool_latency=LATENCY,
        ) as world,
        plugin.connect(plugin.settings(env)) as engine,
        Workers.of(
            cluster,
            arm.engine,
            {**env, **app_env(world.url)},
            count=WORKERS,
            app=PLAIN_APP,
            proxied=False,
        ) as workers,
    ):
        async with _within(engine, limits):
            await workers.fill()
            began = time.monotonic()
            started = await _arrive(engine, arrivals)
            seconds = time.monotonic() - began
        await world.catch_up()
        return _measured(started, limits, world.ledger, seconds)


@asynccontextmanager
async def _within(engine: Engine, limits: Limits) -> AsyncIterator[None]:
    """`limits` in force for the block; the server may be one that others use."""
    before = await engine.limits()
    await engine.set_limits(limits)
    try:
        yield
    finally:
        await engine.set_limits(before)


async def _arrive(engine: Engine, arrivals: int) -> dict[str, int]:
    """Start two runs for each one that ends, until all have ended: when each was started."""
    payload = Question(text=QUESTION, max_model_calls=4).model_dump(mode="json")
    tag = secrets.token_hex(3)  # a server that is not ours may keep older runs
    started: dict[str, int] = {}
    for arrival in range(arrivals):
        await _until_ended(engine, started, arrival // 2)
        run = Run(run_id=f"{tag}.run-{arrival:02d}", kind="investigation", payload=payload)
        await engine.start(run)
        started[run.run_id] = time.monotonic_ns()
    await _until_ended(engine, started, arrivals)
    return started


async def _until_ended(engine: Engine, started: Collection[str], count: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            views = [await engine.get(run) for run in started]
            if sum(view.state.is_final for view in views) >= count:
                return
            await asyncio.sleep(0.1)


def _measured(
    started: Mapping[str, int], limits: Limits, ledger: Ledger, seconds: float
) -> Overload:
    calls = list(ledger.calls.values())
    begins: Mapping[str, int] = {c.who.run: c.begin.t_ns for c in reversed(calls)}
    ages = [(begins[run] - t_ns) / 1e9 for run, t_ns in started.items()]
    quarter = max(1, len(ages) // 4)
    spans: dict[str, list[int]] = {}
    for call in calls:
        if call.end is not None:
            spans.setdefault(call.who.run, []).extend((call.begin.t_ns, call.end.t_ns))
    models = [(c.begin.t_ns, c.end.t_ns) for c in calls if c.end and c.begin.kind == "model"]
    return Overload(
        limits=limits,
        arrivals=len(started),
        most_runs_at_work=_most([(min(times), max(times)) for times in spans.values()]),
        most_model_calls_at_once=_most(models),
        age_first_quarter=median(ages[:quarter]),
        age_last_quarter=median(ages[-quarter:]),
        micro_usd=sum(call.end.micro_usd for call in calls if call.end),
        seconds=seconds,
    )


def _most(spans: list[tuple[int, int]]) -> int:
    """The largest number of spans that overlap at one moment."""
    edges = sorted([(end, -1) for _, end in spans] + [(begin, 1) for begin, _ in spans])
    most = now = 0
    for _, change in edges:
        now += change
        most = max(most, now)
    return most
