"""One arm under its plan, from its first run's start to its last one's end.

    cancel a few runs before any worker lives → start the workers → the fault-free twin →
    faults and cancellations under a steady load → heal → every run ends

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
from functools import cached_property, partial

from comparison.arms import Arm
from comparison.breakers.base import Scene
from comparison.breakers.network import Silence
from comparison.breakers.points import Points
from comparison.breakers.workers import Stall
from comparison.evidence import CancelCase, Cancellation, FaultRecord
from comparison.injector import Tried, inject, until_going_on, until_taken_over
from comparison.kinds import KINDS, POINTS, PlannedFault
from comparison.ledger import Ledger, run_of
from comparison.plan import Plan, stream
from comparison.runs import Runs
from comparison.workers import NoWorkers, Workers
from comparison.world.client import WorldClient

TRIES = 5
"""How often a fault is tried that did not land where it was to land."""
QUIET = 60.0
"""Seconds, beyond three timeouts, in which nobody makes a call: then something is wrong."""
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
    scene: Scene
    runs: Runs
    say: Say
    faults: list[FaultRecord] = field(default_factory=list)
    cancellations: list[Cancellation] = field(default_factory=list)
    healed_ns: int = 0
    converged_ns: int | None = None
    twin_over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def world(self) -> WorldClient:
        return self.scene.world

    @property
    def workers(self) -> Workers:
        return self.scene.workers

    @cached_property
    def _points(self) -> Points:
        return Points(
            self.scene,
            gap=self.arm.gap,
            cancel=partial(self._cancel, case="struck"),
            has_ended=self.runs.has_ended,
        )

    async def carry_out(self) -> None:
        """Everything, in order. Raises `BadInput` when there is nobody left to wait for."""
        work = asyncio.create_task(self._everything())
        watch = asyncio.create_task(self._until_nothing_happens())
        try:
            await asyncio.wait({work, watch}, return_when=asyncio.FIRST_COMPLETED)
            await (work if work.done() else watch)
        finally:
            for task in (work, watch):
                task.cancel()
            await asyncio.gather(work, watch, return_exceptions=True)

    async def _until_nothing_happens(self) -> None:
        """Watch the ledger, in which something happens as long as anybody works.

        Raises `NoWorkers` once it has stood still for longer than any fault explains.
        """
        quiet, seen = 3 * self.arm.timeout + QUIET, -1
        with suppress(TimeoutError):
            while True:
                before = seen
                seen = await self.world.until(
                    lambda ledger, before=before: _news(ledger, before),  # type: ignore[misc] # mypy cannot infer a lambda with a default
                    timeout=quiet,
                )
        raise NoWorkers(
            f"{self.arm.name}: for {quiet:g} s no worker has made a call, though "
            f"{len(self.runs.open_runs)} runs are open and {len(self.workers.running)} workers "
            "are up; see their logs"
        )

    async def _everything(self) -> None:
        await self._cancel_pending()
        await self.workers.fill()
        async with self.scene.meter.during("twin"):
            await self._twin()
        self.twin_over.set()
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
        chance = stream(self.plan.seed, "cancelled runs")
        places = _spread(self.plan.running_cancellations, len(self.plan.faults), chance)
        for planned in self.plan.faults:
            for _ in range(places.count(planned.number)):
                await self._cancel_running(chance)
            await self._fault(planned)

    async def _fault(self, planned: PlannedFault) -> None:
        """One fault, until it has landed and the cluster is whole again; or a few tries."""
        for _ in range(TRIES):
            tried = await inject(self._points, planned)
            refilled = asyncio.create_task(self._refilled())
            try:
                fault, healed = await self._aftermath(tried)
                healed = max(healed, await refilled)
            finally:
                refilled.cancel()
            if tried.breaker is not None:
                fault = fault.model_copy(update={"healed_ns": healed})
            self.faults.append(fault)
            self.say(_told(fault, of=self.plan.faults[-1].number))
            if fault.landed:
                return

    async def _refilled(self) -> int:
        """See to it that no slot is empty; returns when none was."""
        await self.workers.fill()
        return time.monotonic_ns()

    async def _aftermath(self, tried: Tried) -> tuple[FaultRecord, int]:
        """Wait for what the fault was to show, heal it, and let everybody find their feet.

        Returns what came of it, and when it was healed.
        """
        fault, breaker, kind = tried.fault, tried.breaker, KINDS[tried.fault.kind]
        try:
            if fault.landed and kind.lasting:
                await self._while_it_lasts(fault)
        finally:
            late = self.workers.withheld(fault.victim) if isinstance(breaker, Silence) else 0
            resumed = time.monotonic_ns()
            if breaker is not None:
                await breaker.heal()
            healed = time.monotonic_ns()
        if not fault.landed:
            return fault, healed
        if isinstance(breaker, Stall):
            resumed = breaker.over_ns or resumed
        if kind.takes_away and not kind.lasting:
            await self._taken_away(fault)
        elif not kind.takes_away:
            expected = self.arm.predict(fault.kind)[1]
            await until_going_on(self.world, fault, self.runs.has_ended, expected + MARGIN)
        if kind.returns:
            fault = fault.model_copy(update={"resumed_ns": resumed, "late_bytes": late})
        return fault, healed

    async def _while_it_lasts(self, fault: FaultRecord) -> None:
        """Until others have taken over what the victim had, so that it comes back as a zombie."""
        kind, expected = KINDS[fault.kind], self.arm.predict(fault.kind)[1]
        if fault.held_key is None:
            await asyncio.sleep(expected + MARGIN)  # nobody has anything to take over
            return
        held = run_of(fault.held_key)
        if self.runs.was_cancelled(held):
            await self.runs.until_ended([held], timeout=expected + MARGIN)
        elif kind.takes_away:
            await until_taken_over(self.world, fault, [held], expected + PATIENCE)
        await self._taken_away(fault)

    async def _taken_away(self, fault: FaultRecord) -> None:
        """Until the victim's runs are with others, or not much longer than that takes."""
        if fault.kind == "kill+cancel" and fault.held_key is not None:
            await self._cancel(run_of(fault.held_key), "orphan")
        orphans = [run for run in fault.owned if not self.runs.was_cancelled(run)]
        await until_taken_over(self.world, fault, orphans, self.arm.predict(fault.kind)[1] + MARGIN)

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

    async def _cancel(self, run: str, case: CancelCase) -> None:
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
    return [chance.randint(1, places) for _ in range(count)] if places else []


def _news(ledger: Ledger, seen: int) -> int | None:
    """The number of the ledger's last record, if it is newer than `seen`."""
    return ledger.last_seq if ledger.last_seq > seen else None


def _told(fault: FaultRecord, of: int) -> str:
    """A fault in one line."""
    where = f"{fault.kind}, {POINTS[fault.point]}"
    if not fault.landed:
        return f"fault {fault.number}: {where}: did not land: {fault.problem}"
    hit = f"{len(fault.in_flight)} call(s) of {len(fault.owned)} run(s)"
    return f"fault {fault.number}/{of}: {where}; it hit {hit}"
