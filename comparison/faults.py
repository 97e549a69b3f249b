"""One fault at a time: held at an exact point, timed, and confirmed by the ledger.

A fault is aimed by the world, not by the clock: some call is held, its caller is the victim, and
the victim is killed, paused or cut off while the ledger shows it waiting. After that the harness
waits for what the fault is there to show (another worker takes over), so two faults never blur
each other.
A fault that did not verifiably land on work in flight makes its sample unknown, never a pass.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from comparison.cluster import Process
from comparison.evidence import FaultRecord
from comparison.ledger import Begin, Call, Ledger
from comparison.plan import PlannedFault
from comparison.workers import Workers
from comparison.world.client import WorldClient
from comparison.world.holds import Rule
from two_workers import Fence

AIM = 15.0  # seconds in which the call to be held must come
AIMS = 5  # tries, when the call that is held turns out to be a zombie's


@dataclass
class Injector:
    """Brings planned faults to the workers.

    `renewal_gap` is the time in seconds between two heartbeats that reach the server.
    """

    world: WorldClient
    workers: Workers
    renewal_gap: float

    async def inject(self, fault: PlannedFault) -> FaultRecord:
        """Carry out one fault, up to the moment at which it has hit."""
        record = FaultRecord(
            number=fault.number, kind=fault.kind, point=fault.point, phase=fault.phase
        )
        for _ in range(AIMS):
            hit = await self._try(fault, record)
            if hit is not None:
                return hit
        return record.model_copy(update={"problem": "only calls of zombies came to be held"})

    async def _try(self, fault: PlannedFault, record: FaultRecord) -> FaultRecord | None:
        """Aim once. None when the held call turns out to be that of a worker without ownership."""
        hold = await self.world.arm(
            Rule(at=fault.point, kind=fault.call, occurrence=fault.occurrence)
        )
        try:
            held = await self.world.hit(hold, timeout=AIM)
            if held is None:
                return record.model_copy(update={"problem": "no call came that could be held"})
            victim = self.workers.named(held.identity.worker)
            if victim is None or not victim.is_running:
                return record.model_copy(update={"problem": "the held call's worker is not ours"})
            # Not a wait for a condition: this is the randomised part of the experiment.
            await asyncio.sleep(fault.phase * self.renewal_gap)
            await self.world.catch_up()
            if _superseded(self.world.ledger, held, time.monotonic_ns()):
                return None
            before = time.monotonic_ns()
            confirmed = await self._strike(victim, fault)
            after = time.monotonic_ns()
        finally:
            await self.world.release(hold)
        return await self._confirm(record, held, victim, confirmed, before, after)

    async def _strike(self, victim: Process, fault: PlannedFault) -> bool:
        """Do it; returns whether the kernel, or the proxy, confirms it."""
        match fault.kind:
            case "kill" | "kill+cancel":
                await victim.killed()
                return victim.child.returncode == -signal.SIGKILL
            case "pause":
                await victim.stopped()
                return victim.is_running
            case "silence":
                proxy = self.workers.proxy_of(victim.ready.result())
                assert proxy is not None  # planned only for workers that have one
                proxy.silence()
                return proxy.connections > 0
            case _:
                raise ValueError(f"a campaign does not plan a {fault.kind!r}; see its kind")

    async def _confirm(
        self,
        record: FaultRecord,
        held: Begin,
        victim: Process,
        confirmed: bool,
        before: int,
        after: int,
    ) -> FaultRecord:
        """The fault with what the ledger shows about it."""
        await self.world.catch_up()
        worker = held.identity.worker
        ledger = self.world.ledger
        calls = ledger.in_flight(worker, before)
        owned = {c.who.key for c in calls if not _superseded(ledger, c.begin, before)}
        keys = tuple(sorted(owned))
        landed = confirmed and held.identity.key in keys
        return record.model_copy(
            update={
                "victim": worker,
                "held_key": held.identity.key,
                "before_ns": before,
                "after_ns": after,
                "in_flight": keys,
                "landed": landed,
                "problem": None if landed else f"{victim.name} was not hit at work",
            }
        )

    async def until_taken_over(
        self, fault: FaultRecord, runs: Iterable[str], *, timeout: float
    ) -> None:
        """Wait until each of `runs` is taken over, or for `timeout` seconds.

        Only keeps faults apart: whether and when a run was taken over is judged at the end, from
        the ledger.
        """
        wanted = set(runs)

        def look(ledger: Ledger) -> bool | None:
            return wanted <= set(takeovers(ledger.calls.values(), fault)) or None

        with suppress(TimeoutError):
            await self.world.until(look, timeout=timeout)


def _superseded(ledger: Ledger, begin: Begin, t_ns: int) -> bool:
    """True when a newer owner had called for the same step by `t_ns`."""
    who = begin.identity
    return any(
        call.who.key == who.key and call.who.fence > who.fence and call.begin.t_ns <= t_ns
        for call in ledger.calls.values()
    )


def takeovers(calls: Iterable[Call], fault: FaultRecord) -> dict[str, int]:
    """When each run that the fault orphaned was taken over: run → `t_ns`.

    A run is taken over by the first call that a new owner begins for one of the steps that the
    victim was in. (Not by any call: on Temporal the steps of one run may be with several workers
    at once.) The new owner may be the victim itself, back from a pause, under a newer fence.
    """
    fences: dict[str, Fence] = dict.fromkeys(fault.in_flight, (0,))
    found = dict[str, int]()
    for call in calls:
        who, begun = call.who, call.begin.t_ns
        if who.key not in fences:
            continue
        if begun <= fault.after_ns:
            if who.worker == fault.victim:
                fences[who.key] = who.fence
        elif who.worker != fault.victim or who.fence > fences[who.key]:
            found.setdefault(who.run, begun)
    return found
