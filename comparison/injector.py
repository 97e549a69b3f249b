"""Brings one planned fault: reach the crash point, strike, let go, and confirm.

A fault is aimed by the world and the proxies, not by the clock. After it the harness waits for
what the fault is there to show (`comparison.campaign`), so two faults never blur each other. A
fault that did not verifiably land where it was to land makes its sample unknown, never a pass.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass

from comparison.breakers.base import Aim, Breaker, Skipped
from comparison.breakers.catalogue import BREAKERS
from comparison.breakers.points import Missed, Points
from comparison.breakers.skew import Skew
from comparison.evidence import FaultRecord
from comparison.faults import in_hand, takeovers
from comparison.kinds import KINDS, PlannedFault
from comparison.ledger import Ledger
from comparison.world.client import WorldClient


@dataclass(frozen=True)
class Tried:
    """A fault that was tried. `breaker` is what must be healed, if it was struck at all."""

    fault: FaultRecord
    breaker: Breaker | None = None


async def inject(points: Points, planned: PlannedFault) -> Tried:
    """Carry out one fault, up to the moment at which it has met its victim, or missed it."""
    record = FaultRecord(
        number=planned.number,
        kind=planned.kind,
        point=planned.point,
        phase=planned.phase,
        aimed_ns=time.monotonic_ns(),
    )
    breaker: Breaker | None = None
    try:
        async with points.reached(planned) as aim:
            breaker = BREAKERS[planned.kind](aim)
            before = time.monotonic_ns()
            await breaker.strike()
            after = time.monotonic_ns()
    except (Missed, Skipped) as reason:
        return Tried(record.model_copy(update={"problem": str(reason)}), breaker)
    problem = await breaker.problem()
    confirmed = time.monotonic_ns() if problem is None else None
    await points.scene.world.catch_up()
    problem = problem or points.missed(planned, aim, before)
    met = record.model_copy(
        update={
            "victim": _victim(planned, aim, breaker),
            "held_key": None if aim.held is None else aim.held.identity.key,
            "before_ns": before,
            "after_ns": after,
            "confirmed_ns": confirmed,
            **_work(points, planned, aim, before),
            "landed": problem is None,
            "problem": problem,
        }
    )
    return Tried(met, breaker)


def _victim(planned: PlannedFault, aim: Aim, breaker: Breaker) -> str:
    """The id of the worker that was struck; empty when all were."""
    if isinstance(breaker, Skew):
        return breaker.joined
    return "" if KINDS[planned.kind].hits_all else aim.worker


def _work(points: Points, planned: PlannedFault, aim: Aim, before: int) -> dict[str, object]:
    """What the fault hit: steps whose call was in flight, and a step that had just been done."""
    kind, workers = KINDS[planned.kind], [aim.worker]
    if kind.hits_all:
        workers = list(points.scene.workers.running)
    elif kind.joins:
        workers = []
    done = aim.held if planned.point in ("record", "between") else None
    return {
        "in_flight": in_hand(points.scene.world.ledger, workers, before),
        "answered": None if done is None else done.identity.key,
    }


async def until_taken_over(
    world: WorldClient, fault: FaultRecord, runs: Collection[str], timeout: float
) -> None:
    """Wait until each of `runs` is taken over, or for `timeout` seconds.

    Only keeps faults apart: whether and when a run was taken over is judged at the end, from the
    ledger.
    """

    def look(ledger: Ledger) -> bool | None:
        return set(runs) <= takeovers(ledger.calls.values(), fault).keys() or None

    with suppress(TimeoutError):
        await world.until(look, timeout=timeout)


async def until_going_on(
    world: WorldClient, fault: FaultRecord, has_ended: Callable[[str], bool], timeout: float
) -> None:
    """Wait until each run that the fault met has ended or made a further call, for a while."""

    def look(ledger: Ledger) -> bool | None:
        calls = ledger.calls.values()
        further = {call.who.run for call in calls if call.begin.t_ns > fault.after_ns}
        return all(run in further or has_ended(run) for run in fault.owned) or None

    with suppress(TimeoutError):
        await world.until(look, timeout=timeout)
