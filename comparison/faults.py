"""What the ledger says about a fault: whose work it hit, and when somebody else had that work."""

from __future__ import annotations

from collections.abc import Iterable

from comparison.evidence import FaultRecord
from comparison.ledger import Begin, Call, Ledger, batch_of, run_of
from two_workers import Fence


def in_hand(ledger: Ledger, workers: Iterable[str], t_ns: int) -> tuple[str, ...]:
    """The keys of the steps that `workers` owned and were calling at `t_ns`."""
    calls = [call for worker in workers for call in ledger.in_flight(worker, t_ns)]
    return tuple(sorted({c.who.key for c in calls if not superseded(ledger, c.begin, t_ns)}))


def superseded(ledger: Ledger, begin: Begin, t_ns: int) -> bool:
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
    at once.) The new owner may be the victim itself, back from a pause, under a newer fence. A run
    whose step the victim had just done is taken over by whoever else goes on with it.
    """
    owners: dict[str, tuple[str, Fence]] = {}
    found = dict[str, int]()
    for call in calls:
        who, begun = call.who, call.begin.t_ns
        if begun <= fault.after_ns:
            if who.key in fault.in_flight and fault.victim in ("", who.worker):
                owners[who.key] = who.worker, who.fence
        elif who.key in owners:
            worker, fence = owners[who.key]
            if who.worker != worker or who.fence > fence:
                found.setdefault(who.run, begun)
        elif who.worker != fault.victim and goes_on(call, fault):
            found.setdefault(who.run, begun)
    return found


def goes_on(call: Call, fault: FaultRecord) -> bool:
    """True for a call of the run whose step the victim had just done: that step, or a later one."""
    if fault.answered is None or call.who.run != run_of(fault.answered):
        return False
    return call.who.key == fault.answered or batch_of(call.who.key) > batch_of(fault.answered)
