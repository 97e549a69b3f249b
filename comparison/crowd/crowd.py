"""The crowd, from its server's start to the engine at rest.

    limits → everybody starts, no worker lives yet → workers → words are sent meanwhile →
    a worker paused until its work is taken → limits raised → the poison, which kills one worker
    after the other, each of them replaced → every run ends → what is counted at rest

`stage` gives it a server, a world and workers.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from comparison.arms import Arm
from comparison.cluster import Cluster
from comparison.crowd.notes import LimitsSet
from comparison.crowd.script import LIMITS, POISON, RAISED, SHARED, Member, members
from comparison.crowd.signals import Sender
from comparison.evidence import FaultRecord
from comparison.faults import in_hand
from comparison.injector import until_taken_over
from comparison.runs import Runs
from comparison.workers import Workers
from comparison.world.client import WorldClient
from comparison.world.holds import Rule
from two_workers import Engine, Limits

AIM = 30.0
"""Seconds in which a worker must come to make a call."""
PATIENCE = 15.0
"""Seconds beyond the predicted takeover for which a paused worker stays paused."""
COMPANY = 5.0
"""Seconds in which some neighbour should make a call, and then the worker die."""
CONVERGENCE = 60.0
"""Seconds in which everybody must end, beside a takeover for each of them."""


@dataclass
class Crowd:
    """What is going on, and what has been noted so far."""

    arm: Arm
    engine: Engine
    world: WorldClient
    cluster: Cluster
    workers: Workers
    runs: Runs
    sender: Sender
    before: Limits
    members: dict[str, Member] = field(default_factory=dict)
    limits: list[LimitsSet] = field(default_factory=list)
    faults: list[FaultRecord] = field(default_factory=list)
    converged_ns: int | None = None

    async def carry_out(self) -> None:
        """Everything, in order."""
        await self._limit(LIMITS)
        everybody = members()
        for index, member in enumerate(everybody):
            await self._start(index, member)
        await self.workers.fill()
        beside = [asyncio.create_task(self._speak()), asyncio.create_task(self._keep_up())]
        try:
            await self._pause()
            await self._limit(RAISED)
            await self._poison(len(everybody))
            await self._until_ended(beside)
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)

    @property
    def bound(self) -> float:
        """Seconds after the last fault that the harness brings in which everybody must have ended.

        What kills from then on is the poison, and each of its victims may have to wait for it.
        """
        return len(members()) * self.arm.predict("kill")[1] + CONVERGENCE

    async def _limit(self, limits: Limits) -> None:
        """Beside whatever limits the server has already: it may be one that others use."""
        both = {
            "pools": {**self.before.pools, **limits.pools},
            "tenants": {**self.before.tenants, **limits.tenants},
        }
        asked = time.monotonic_ns()
        await self.engine.set_limits(self.before.model_copy(update=both))
        self.limits.append(
            LimitsSet(asked_ns=asked, acknowledged_ns=time.monotonic_ns(), limits=limits)
        )

    async def _start(self, index: int, member: Member) -> None:
        run = await self.runs.start(
            member.name, index, twin=False, tenant=member.tenant, budget=member.budget
        )
        self.members[run] = member

    async def _speak(self) -> None:
        listeners = [(run, m.words) for run, m in self.members.items() if m.words]
        await asyncio.gather(*(self.sender.speak(run, words) for run, words in listeners))

    async def _keep_up(self) -> None:
        """A supervisor: as a worker ends, another one is started. Until cancelled."""
        while True:
            await self.workers.fill()
            ends = [asyncio.create_task(p.child.wait()) for p in self.cluster.running]
            try:
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for end in ends:
                    end.cancel()

    async def _pause(self) -> None:
        """Pause the worker that calls next, while it waits for its answer, past its ownership."""
        hold = await self.world.arm(Rule(at="begin", kind="model"))
        try:
            held = await self.world.hit(hold, timeout=AIM)
            victim = None if held is None else self.workers.named(held.identity.worker)
            if held is None or victim is None:
                return  # nobody is at work: then nothing is tested, and the checks say so
            before = time.monotonic_ns()
            await victim.stopped()
            after = time.monotonic_ns()
        finally:
            await self.world.release(hold)
        await self.world.catch_up()
        worker = held.identity.worker
        fault = FaultRecord(
            number=1,
            kind="pause",
            point="begin",
            phase=0.0,
            victim=worker,
            held_key=held.identity.key,
            before_ns=before,
            after_ns=after,
            in_flight=in_hand(self.world.ledger, [worker], before),
            landed=True,
        )
        bound = self.arm.predict(fault.kind)[1] + PATIENCE
        await until_taken_over(self.world, fault, fault.owned, bound)
        self.faults.append(fault.model_copy(update={"resumed_ns": time.monotonic_ns()}))
        victim.resume()

    async def _poison(self, index: int) -> None:
        """Let the poison in, and have its first deaths happen while a neighbour is in a call.

        Its last words are held until one is, and the neighbour's answer until the worker is dead.
        Later deaths happen as they come: it may be alone.
        """
        last_words = Rule(at="reply", kind="tool")
        hold = await self.world.arm(last_words)
        await self._start(index, POISON)
        for _ in range(SHARED):
            try:
                dying = await self.world.hit(hold, timeout=AIM)
                if dying is not None:
                    await self._die_in_company(dying.identity.worker, hold)
            finally:
                await self.world.release(hold)
            hold = await self.world.arm(last_words)
        await self.world.release(hold)

    async def _die_in_company(self, worker: str, last_words: int) -> None:
        victim = self.workers.named(worker)
        company = await self.world.arm(Rule(at="begin", kind="model", worker=worker))
        try:
            await self.world.hit(company, timeout=COMPANY)
            await self.world.release(last_words)
            if victim is not None:
                with suppress(TimeoutError):
                    async with asyncio.timeout(COMPANY):
                        await victim.child.wait()
        finally:
            await self.world.release(company)

    async def _until_ended(self, beside: list[asyncio.Task[None]]) -> None:
        """Every run must end. Raises what kept the words or the supervisor from going on."""
        ended = asyncio.create_task(self.runs.until_all_ended(timeout=self.bound))
        going: set[asyncio.Task[Any]] = {ended, *beside}
        try:
            while not ended.done():
                done, going = await asyncio.wait(going, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
        finally:
            ended.cancel()
        if ended.result():
            self.converged_ns = time.monotonic_ns()
