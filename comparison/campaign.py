"""One arm, from its server's start to its last run's end.

    cancel a few runs before any worker lives → start the workers → the fault-free twin →
    faults and cancellations under a steady load → heal → every run ends → collect the evidence

The load is closed: as one investigation ends the next is started, so that there is always work in
flight for a fault to land on. The twin runs the same questions on the same workers beforehand.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from comparison.arms import Arm
from comparison.evidence import Cancellation, FaultRecord
from comparison.faults import Injector
from comparison.ledger import Ledger
from comparison.meters import Meter
from comparison.plan import Plan, PlannedFault, stream
from comparison.runs import Runs
from comparison.workers import Workers
from comparison.world.client import WorldClient

PATIENCE = 15.0
"""Seconds to wait, beyond what is predicted, for what the experiment cannot do without."""
MARGIN = 1.0
"""Seconds beyond the predicted takeover after which the next fault may come."""
CONVERGENCE = 40.0
"""Seconds after the last heal in which every run must have ended."""

Say = Callable[[str], None]


@dataclass
class Campaign:
    """What is going on in one arm, and what has been noted so far."""

    arm: Arm
    plan: Plan
    world: WorldClient
    workers: Workers
    runs: Runs
    meter: Meter
    say: Say
    faults: list[FaultRecord] = field(default_factory=list)
    cancellations: list[Cancellation] = field(default_factory=list)
    healed_ns: int = 0
    converged_ns: int | None = None

    async def carry_out(self) -> None:
        """Everything, in order."""
        await self._cancel_pending()
        await self.workers.fill()
        async with self.meter.during("twin"):
            await self._twin()
        feeder = asyncio.create_task(self._feed())
        try:
            await self._break_things()
        finally:
            feeder.cancel()
        with suppress(asyncio.CancelledError):
            await feeder  # raises what went wrong, if it had ended by itself
        await self._finish_investigations()
        await self._heal()
        await self._converge()

    async def _cancel_pending(self) -> None:
        """Before any worker lives a run cannot be anything but pending."""
        for number in range(self.plan.pending_cancellations):
            run = await self.runs.start(f"pending-{number:02d}", number, twin=False)
            await self._cancel(run, "pending")
        self.say(f"{self.plan.pending_cancellations} runs cancelled before any worker lived")

    async def _twin(self) -> None:
        """Each question once, without faults, under the load that the faults will meet."""
        names: list[str] = []
        for question in range(len(self.plan.questions)):
            await self.runs.until_open_below(self.plan.open_runs)
            names.append(await self.runs.start(f"twin-{question:02d}", question, twin=True))
        await self.runs.until_ended(names, timeout=CONVERGENCE)
        self.say(f"fault-free twin: {len(names)} investigations")

    async def _feed(self) -> None:
        """Keep `open_runs` investigations open until cancelled."""
        for number in itertools.count():
            await self.runs.until_open_below(self.plan.open_runs)
            await self._investigate(number)

    async def _investigate(self, number: int) -> None:
        question = number % len(self.plan.questions)
        await self.runs.start(f"run-{number:03d}", question, twin=False)

    async def _finish_investigations(self) -> None:
        """Start what is missing, if the faults were over before the planned number was reached."""
        for number in range(self.runs.investigations, self.plan.investigations):
            await self._investigate(number)

    async def _break_things(self) -> None:
        injector = Injector(self.world, self.workers, renewal_gap=self.arm.gap)
        chance = stream(self.plan.seed, "cancelled runs")
        places = _spread(self.plan.running_cancellations, len(self.plan.faults), chance)
        for fault in self.plan.faults:
            for _ in range(places.count(fault.number)):
                await self._cancel_running(chance)
            self.faults.append(await self._fault(injector, fault))

    async def _fault(self, injector: Injector, planned: PlannedFault) -> FaultRecord:
        """One fault, until the cluster is whole again."""
        fault = await injector.inject(planned)
        if not fault.landed:
            self.say(f"fault {fault.number}: {fault.kind} did not land: {fault.problem}")
            self.workers.heal()
            await self.workers.fill()
            return fault
        self.say(
            f"fault {fault.number}/{len(self.plan.faults)}: {fault.kind} of a worker in "
            f"{len(fault.in_flight)} call(s) of {len(fault.owned)} run(s)"
        )
        refilled = asyncio.create_task(self.workers.fill())
        try:
            fault = await self._aftermath(injector, fault)
            await refilled
        finally:
            refilled.cancel()
        return fault

    async def _aftermath(self, injector: Injector, fault: FaultRecord) -> FaultRecord:
        """Wait for what the fault was to show, and let a victim that was spared go on."""
        assert fault.held_key is not None  # it landed
        held = fault.held_key.rpartition("/")[0]
        if fault.kind == "kill+cancel":
            await self._cancel(held, "orphan")
        expected = self.arm.predict(fault.kind)[1]
        if fault.spares_its_victim and not self.runs.was_cancelled(held):
            # A zombie is one only when somebody else has its work.
            await injector.until_taken_over(fault, [held], timeout=expected + PATIENCE)
        orphans = [run for run in fault.owned if not self.runs.was_cancelled(run)]
        await injector.until_taken_over(fault, orphans, timeout=expected + MARGIN)
        return self._relent(fault) if fault.spares_its_victim else fault

    def _relent(self, fault: FaultRecord) -> FaultRecord:
        """Let a victim go on that was spared; what it had on its way goes with it."""
        victim, proxy = self.workers.named(fault.victim), self.workers.proxy_of(fault.victim)
        assert victim is not None
        late = 0
        if fault.kind == "silence" and proxy is not None:
            late = proxy.withheld["to_server"]
            proxy.heal()
        resumed = time.monotonic_ns()
        victim.resume()
        return fault.model_copy(update={"resumed_ns": resumed, "late_bytes": late})

    async def _cancel_running(self, chance: random.Random) -> None:
        """Cancel a run that is waiting for the model at this moment."""

        def at_work(ledger: Ledger) -> list[str] | None:
            now = time.monotonic_ns()
            found = {
                call.who.run
                for call in ledger.calls.values()
                if call.begin.kind == "model" and call.in_flight_at(now)
            }
            return sorted(found & self.runs.open_runs) or None

        try:
            candidates = await self.world.until(at_work, timeout=PATIENCE)
        except TimeoutError:
            self.say("no run was at work that could be cancelled")
            return
        await self._cancel(chance.choice(candidates), "running")

    async def _cancel(self, run: str, case: Literal["pending", "running", "orphan"]) -> None:
        self.cancellations.append(await self.runs.cancel(run, case))

    async def _heal(self) -> None:
        await self.world.release_all()
        self.workers.heal()
        await self.workers.fill()
        self.healed_ns = time.monotonic_ns()

    async def _converge(self) -> None:
        """After the last heal every run must end: awaited, with a bound."""
        self.say("healed; waiting for every run to end")
        if await self.runs.until_all_ended(timeout=CONVERGENCE):
            self.converged_ns = time.monotonic_ns()
        self.cancellations = [self.runs.with_end(c) for c in self.cancellations]


def _spread(count: int, places: int, chance: random.Random) -> list[int]:
    """`count` places from 1 to `places`, drawn evenly."""
    return [chance.randint(1, places) for _ in range(count)]
