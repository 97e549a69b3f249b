"""One fault on one arm, once: the smallest campaign, with a full one's evidence and checks.

    a fault-free twin → a call is held → the fault → more work arrives → heal → every run ends

Servers are the arm's embedded ones, since some faults crash them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from comparison.arms import Arm
from comparison.breakers.base import Aim, Breaker, bring
from comparison.breakers.servers import Postgres, Server, Temporal
from comparison.checks import CHECKS
from comparison.cluster import Cluster, Process
from comparison.dumps import collect
from comparison.engines import by_way_of, plugin_of, server_address, worker_command
from comparison.evidence import Case, Clock, End, Evidence, FaultRecord, Start
from comparison.faults import takeovers
from comparison.ledger import Index, Ledger
from comparison.proxy import Proxy
from comparison.verdicts import Verdict
from comparison.world.client import WorldClient, app_env, open_world
from comparison.world.holds import Rule
from hand_rolled.server import EmbeddedPostgres
from hand_rolled.server import embedded as embedded_postgres
from investigation.steps import Question
from temporal_version.server import SERVER_KNOBS, DevServer, find_executable
from temporal_version.settings import read as read_temporal
from two_workers import Engine, Run, RunCancelled, RunFailed

WORKERS = 2
QUESTION = "Why do checkouts fail?"
LATENCY = (0.05, 0.15)
AIM = 60.0  # seconds in which the call to be held must come
CONVERGENCE = 60.0
"""Seconds after the heal in which every run must have ended."""

Lasts = Literal["a moment", "until takeover", "until the end"]
LASTS: Mapping[str, Lasts] = {
    "mute": "until takeover",
    "deaf": "until takeover",
    "idle pause": "until the end",
    "skew": "until the end",
}
"""How long each kind of fault goes on before it is healed; a moment, if it is not named."""


@dataclass(frozen=True)
class Situation:
    """What a breaker may be made for: the worker in the held call, and everything around it."""

    victim: Process
    proxy: Proxy
    idle: Process
    server: Server
    env: Mapping[str, str]


@dataclass
class Trial:
    """What is up, and what has happened."""

    arm: Arm
    engine: Engine
    world: WorldClient
    cluster: Cluster
    server: Server
    env: Mapping[str, str]
    stack: contextlib.AsyncExitStack
    crew: dict[str, tuple[Process, Proxy]] = field(default_factory=dict)
    starts: list[Start] = field(default_factory=list)

    async def worker(self, app: str, extra: Mapping[str, str]) -> str:
        """A worker behind a proxy of its own; returns its id."""
        address = server_address(self.arm.engine, self.env)
        proxy = await self.stack.enter_async_context(Proxy.before(*address))
        process = await self.cluster.start(
            f"worker-{len(self.crew) + 1:02d}",
            worker_command(self.arm.engine, app),
            {**by_way_of(self.arm.engine, self.env, proxy.port), **extra},
            ready=r"^worker (\S+) ready",
        )
        self.crew[process.ready.result()] = (process, proxy)
        return process.ready.result()

    async def start(self, name: str, *, twin: bool = False) -> str:
        payload = Question(text=QUESTION, max_model_calls=4).model_dump(mode="json")
        await self.engine.start(Run(run_id=name, kind="investigation", payload=payload))
        self.starts.append(Start(run=name, question=0, t_ns=time.monotonic_ns(), twin=twin))
        return name

    async def aim(self, breaks_all: bool) -> Aim:
        """Hold the reply of the next model call, and start the run that makes it."""
        hold = await self.world.arm(Rule(at="reply", kind="model"))
        await self.start("run-1")
        held = await self.world.hit(hold, timeout=AIM)
        if held is None:
            raise TimeoutError("no call came that could be held")
        return Aim(hold, held, list(self.crew) if breaks_all else [held.identity.worker])

    def situation(self, worker: str) -> Situation:
        process, proxy = self.crew[worker]
        [idle] = [other for name, (other, _) in self.crew.items() if name != worker]
        return Situation(process, proxy, idle, self.server, self.env)

    async def until_over(self, fault: FaultRecord) -> None:
        """Let a fault last as long as its kind does."""
        match LASTS.get(fault.kind, "a moment"):
            case "a moment":
                return
            case "until takeover":
                with contextlib.suppress(TimeoutError):
                    await self.world.until(
                        lambda ledger: bool(takeovers(ledger.calls.values(), fault)) or None,
                        timeout=self.arm.predict("silence")[1] + 15,
                    )
            case "until the end":
                await self.ends(within=self.arm.predict("pause")[1] + 15)

    async def ends(self, *, within: float) -> list[End]:
        """How the runs stand when all have ended, or `within` so many seconds."""
        deadline = time.monotonic() + within
        return [await self._end(start.run, deadline) for start in self.starts]

    async def _end(self, run: str, deadline: float) -> End:
        while True:
            try:
                view = await self.engine.get(run)
                if view.state.is_final or time.monotonic() > deadline:
                    t_ns, result = time.monotonic_ns(), await self._result(run)
                    again = await self.engine.get(run)
                    return End(
                        run=run,
                        state=view.state,
                        t_ns=t_ns,
                        result=result,
                        failure=view.failure,
                        steps=tuple(await self.engine.steps(run)),
                        state_again=again.state,
                        result_again=await self._result(run),
                    )
            except Exception:  # the server may be away: whatever its client raises then
                if time.monotonic() > deadline:
                    raise
            await asyncio.sleep(0.1)

    async def _result(self, run: str) -> object:
        try:
            return await self.engine.result(run, timeout=0.5)
        except (RunFailed, RunCancelled, TimeoutError):
            return None


async def break_once(
    arm: Arm,
    make: Callable[[Situation], Breaker],
    directory: Path,
    *,
    breaks_all: bool = False,
    app: str = "investigation.app:APP",
    worker_envs: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {}),
) -> Case:
    """Bring one fault to `arm`, heal it, and return what all that left behind.

    `breaks_all`: the fault hits every worker. `worker_envs` has something more for each worker.
    """
    clock = Clock.now()
    async with opened(arm, directory) as trial:
        for extra in worker_envs:
            await trial.worker(app, extra)
        await trial.start("twin", twin=True)
        await trial.ends(within=CONVERGENCE)
        aim = await trial.aim(breaks_all)
        breaker = make(trial.situation(aim.held.identity.worker))
        try:
            fault = await bring(breaker, trial.world, aim)
            for number in (2, 3):
                await _patiently(trial, f"run-{number}")
            await trial.until_over(fault)
        finally:
            await breaker.heal()
        return await _left_behind(trial, fault, clock, directory / "logs")


@asynccontextmanager
async def opened(arm: Arm, directory: Path) -> AsyncIterator[Trial]:
    """A trial whose server, world and client are up; workers are asked for."""
    async with contextlib.AsyncExitStack() as stack:
        data = stack.enter_context(scratch())
        env, server = await stack.enter_async_context(arm_server(arm, data))
        cluster = await stack.enter_async_context(Cluster.open(directory / "logs"))
        world = await stack.enter_async_context(
            open_world(
                cluster,
                directory / "ledger.jsonl",
                seed=1,
                model_latency=LATENCY,
                tool_latency=LATENCY,
            )
        )
        env = {**env, **app_env(world.url)}
        plugin = plugin_of(arm.engine)
        await plugin.prepare(plugin.settings(env))
        engine = await stack.enter_async_context(plugin.connect(plugin.settings(env)))
        trial = Trial(arm, engine, world, cluster, server, env, stack)
        yield trial
        # While their server can still be reached: the proxies close right after this.
        await cluster.stop([process for process, _ in trial.crew.values()])


async def _left_behind(trial: Trial, fault: FaultRecord, clock: Clock, logs: Path) -> Case:
    """Wait for every run's end, and collect what the engine and the world have on record."""
    healed = time.monotonic_ns()
    ends = await trial.ends(within=CONVERGENCE)
    converged = time.monotonic_ns() if all(end.state.is_final for end in ends) else None
    await trial.world.catch_up()
    ledger = trial.world.ledger
    records = await collect(trial.engine, trial.env, ends, ledger, clock, logs)
    evidence = Evidence(
        arm=trial.arm.name,
        engine=trial.arm.engine,
        settings=dict(trial.arm.env),
        clock=clock.checked(),
        starts=tuple(trial.starts),
        ends=tuple(ends),
        faults=(fault,),
        cancellations=(),
        ownerships=records.ownerships,
        writes=records.writes,
        refused_writes=records.refused_writes,
        healed_ns=healed,
        converged_ns=converged,
        convergence_bound=CONVERGENCE,
        server=records.server,
    )
    return Case(evidence=evidence, calls=Index(Ledger.of(ledger.records)))


TAKEN_AWAY = frozenset({"mute"})
"""The kinds that cost their victim its work. After the others it may well keep it."""


def judge(case: Case) -> list[Verdict]:
    """Every check that applies: INV-ORPHAN only where the victim must lose its runs."""
    [fault] = case.evidence.faults
    skipped = set() if fault.kind in TAKEN_AWAY else {"INV-ORPHAN", "INV-LEASE"}
    return [check(case) for check in CHECKS if check.invariant not in skipped]


async def _patiently(trial: Trial, name: str) -> None:
    """Start a run though the server may only just be back."""
    async with asyncio.timeout(CONVERGENCE):
        while True:
            try:
                await trial.start(name)
                return
            except Exception:  # whatever this engine's client raises when its server is away
                await asyncio.sleep(0.2)


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A directory for the server's data, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="two-workers-", ignore_cleanup_errors=True) as name:
        yield Path(name)


@asynccontextmanager
async def arm_server(arm: Arm, directory: Path) -> AsyncIterator[tuple[dict[str, str], Server]]:
    """The arm's embedded server, and how to crash it."""
    base = {**os.environ, **arm.env}
    if arm.engine != "temporal":
        async with embedded_postgres(directory) as found:
            server = EmbeddedPostgres(directory / "postgres")
            yield {**base, **found}, Postgres(server)
        return
    dev_server = DevServer(
        directory,
        executable=find_executable(base),
        knobs=SERVER_KNOBS[read_temporal(base).arm],
    )
    await dev_server.start()
    try:
        where = {"TEMPORAL_ADDRESS": dev_server.address, "TEMPORAL_NAMESPACE": "default"}
        yield {**base, **where}, Temporal(dev_server)
    finally:
        await dev_server.stop()
