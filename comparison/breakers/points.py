"""How a worker is met at a named crash point. The same on every engine, since all of it is outside.

    begin, during, reply   the world holds a call: before its work, at half of it, or when the
                           answer is paid and has not left; its caller is the victim
    finish                 the answer to the report is held
    cancel                 a call is held, and its run's cancellation has been acknowledged
    heartbeat              a call is held, and the proxy has stopped the victim's next heartbeat
    record                 an answer has been let go, the only one of the victim's calls, and the
                           proxy has stopped the record of it
    between                the same, and the proxy has stopped the server's word that it is
                           recorded: no call of the run is in flight
    idle                   a worker that has made no call for a while

After that comes a random part of a renewal gap (where no such moment is prescribed), so that
faults fall evenly between two heartbeats; then the fault; then whatever was stopped goes on.

What cannot be told apart: at `record` and `heartbeat` the request has left the victim whole; it
may arrive when the victim is dead or paused, as packets do, or be lost with the connection. At
`between`, Temporal decides the next step in whichever worker has the workflow in its cache, often
another than the victim: then the run goes on at once. At `idle` a worker may have been given work
that it has not begun.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from comparison.breakers.base import CONFIRM, Aim, Scene
from comparison.faults import superseded
from comparison.kinds import KINDS, PlannedFault
from comparison.ledger import CallKind, batch_of
from comparison.links import Moment
from comparison.world.holds import HoldPoint, Rule

AIM = 15.0  # seconds in which the crash point must come
AIMS = 5  # tries, when the call that is held turns out to be a zombie's
IDLE_NS = 500_000_000
"""For so long an idle worker has made no call: longer than it takes to record a step and go on."""


class Missed(Exception):
    """The crash point was not reached; the message says why."""


@dataclass(frozen=True)
class Points:
    """Meets workers at crash points. `gap` is the time in seconds between two heartbeats.

    `cancel` cancels a run and returns when that is acknowledged; `has_ended` says whether a run's
    end has been seen.
    """

    scene: Scene
    gap: float
    cancel: Callable[[str], Awaitable[None]]
    has_ended: Callable[[str], bool]

    @asynccontextmanager
    async def reached(self, fault: PlannedFault) -> AsyncIterator[Aim]:
        """A victim at the fault's point, which goes on from there when the block is left.

        Raises `Missed`.
        """
        async with AsyncExitStack() as stack:
            match fault.point:
                case "begin" | "during" | "reply":
                    aim, _ = await self._calling(fault, fault.point, fault.call, stack)
                case "finish":
                    aim, _ = await self._calling(fault, "reply", "report", stack)
                case "cancel":
                    aim, _ = await self._calling(fault, "during", "model", stack)
                    assert aim.held is not None
                    await self.cancel(aim.held.identity.run)
                case "heartbeat":
                    aim, _ = await self._calling(fault, "during", fault.call, stack)
                    await self._stopped(aim, "heartbeat", "asked", stack)
                case "record" | "between":
                    aim, hold = await self._calling(fault, "reply", "model", stack)
                    await self._nothing_else_to_record(aim, stack)
                    moment: Moment = "asked" if fault.point == "record" else "answered"
                    await self._stopped(aim, "record", moment, stack, let_go=hold)
                case "idle":
                    aim = await self._idle(fault)
            yield aim

    def missed(self, fault: PlannedFault, aim: Aim, before_ns: int) -> str | None:
        """By the ledger: None when the victim was where it was to be struck, or where it was."""
        ledger, name = self.scene.world.ledger, aim.victim.name
        if fault.point == "idle":
            joins = KINDS[fault.kind].joins
            busy = not joins and ledger.in_flight(aim.worker, before_ns)
            return f"{name} had been given work" if busy else None
        assert aim.held is not None
        call, run = ledger.calls[aim.held.call], aim.held.identity.run
        if fault.point in ("record", "between"):
            if not call.delivered:
                return f"{name} never got its answer"
            later = any(
                other.begin.t_ns <= before_ns and batch_of(other.who.key) > batch_of(call.who.key)
                for other in ledger.of_run(run)
            )
            return f"{run} had gone on already" if later else None
        if fault.point == "cancel" and self.has_ended(run):
            return f"{run} had ended already"
        return None if call.in_flight_at(before_ns) else f"{name} was not hit at work"

    async def _calling(
        self, fault: PlannedFault, at: HoldPoint, kind: CallKind, stack: AsyncExitStack
    ) -> tuple[Aim, int]:
        """Somebody in a call that is held, and the number of the hold."""
        world = self.scene.world
        for _ in range(AIMS):
            hold = await world.arm(Rule(at=at, kind=kind, occurrence=fault.occurrence))
            stack.push_async_callback(world.release, hold)
            held = await world.hit(hold, timeout=AIM)
            if held is None:
                raise Missed("no call came that could be held")
            victim = self.scene.workers.named(held.identity.worker)
            if victim is None or not victim.is_running:
                raise Missed("the held call's worker is not ours")
            # Not a wait for a condition: this is the randomised part of the experiment.
            await asyncio.sleep(fault.phase * self.gap)
            await world.catch_up()
            if not superseded(world.ledger, held, time.monotonic_ns()):
                return Aim(self.scene, held.identity.worker, victim, held), hold
            await world.release(hold)
        raise Missed("only calls of zombies came to be held")

    async def _nothing_else_to_record(self, aim: Aim, stack: AsyncExitStack) -> None:
        """Hold the answers to the victim's other calls, and let it record those that it has."""
        world = self.scene.world
        others = await world.arm(Rule(at="reply", worker=aim.worker, every=True))
        stack.push_async_callback(world.release, others)
        while any(
            call.who.worker == aim.worker and call.end is not None and call.end.t_ns > self._since()
            for call in world.ledger.calls.values()
        ):
            await asyncio.sleep(0.02)

    async def _stopped(
        self,
        aim: Aim,
        request: str,
        moment: Moment,
        stack: AsyncExitStack,
        *,
        let_go: int | None = None,
    ) -> None:
        """Stop the victim's next `request` in its proxy. `let_go`: first release that hold."""
        trap = aim.proxy.trap(self.scene.request(request), moment)
        stack.callback(trap.let_go)
        if let_go is not None:
            await self.scene.world.release(let_go)
        try:
            async with asyncio.timeout(2 * self.gap + CONFIRM):
                await trap.sprung.wait()
        except TimeoutError:
            raise Missed(f"no {request} of {aim.victim.name} came by") from None

    async def _idle(self, fault: PlannedFault) -> Aim:
        """Somebody who has made no call for a while; anybody if the victim is yet to join."""
        ledger, workers = self.scene.world.ledger, self.scene.workers
        deadline = time.monotonic() + AIM
        while time.monotonic() < deadline:
            since = self._since()
            busy = {
                call.who.worker
                for call in ledger.calls.values()
                if call.end is None or call.end.t_ns > since
            }
            idle = sorted(workers.running.keys() - (set() if KINDS[fault.kind].joins else busy))
            if idle:
                worker = random.Random(fault.phase).choice(idle)
                return Aim(self.scene, worker, workers.running[worker])
            await asyncio.sleep(0.02)  # idleness is the absence of news
        raise Missed("nobody was idle")

    def _since(self) -> int:
        """Who has had no answer since then has nothing left to record."""
        return time.monotonic_ns() - IDLE_NS
