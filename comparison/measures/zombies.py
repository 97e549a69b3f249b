"""What workers that were thought dead did when they came back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass

from comparison.evidence import Case, FaultRecord
from comparison.faults import takeovers
from comparison.ledger import Call
from comparison.owner_checks import inv_fence


@dataclass(frozen=True)
class Zombies:
    """What workers that lived on did after somebody else had taken over their work.

    A write was *tried* when the engine refused it, by the worker's own log, when what a silence
    had withheld reached the server after the takeover, or when it was accepted.
    """

    spared: int
    calls_made: int
    calls_refused: int
    writes_refused: int
    late_arrivals: int
    writes_accepted: int

    def __add__(self, other: Zombies) -> Zombies:
        """Both together."""
        return Zombies(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    @property
    def writes_tried(self) -> int:
        return max(self.writes_refused, self.late_arrivals) + self.writes_accepted


def zombies(case: Case) -> Zombies:
    """All zombies of one campaign."""
    evidence = case.evidence
    spared = [f for f in evidence.faults if f.spares_its_victim and f.landed and f.resumed_ns]
    made = [call for fault in spared for call in _zombie_calls(case, fault)]
    victims = {fault.victim for fault in spared}
    taken = [f for f in spared if takeovers(case.calls.ledger.calls.values(), f)]
    return Zombies(
        spared=len(spared),
        calls_made=len(made),
        calls_refused=sum(call.refused for call in made),
        writes_refused=sum(refused.worker in victims for refused in evidence.refused_writes),
        late_arrivals=sum(fault.late_bytes > 0 for fault in taken),
        writes_accepted=len(inv_fence(case).violations),
    )


def _zombie_calls(case: Case, fault: FaultRecord) -> Iterator[Call]:
    """Calls of a woken worker for work that somebody newer had claimed or called for."""
    assert fault.resumed_ns is not None
    claims = case.evidence.ownerships
    for calls in case.calls.by_key.values():
        for call in calls:
            who, begun = call.who, call.begin.t_ns
            if who.worker != fault.victim or begun < fault.resumed_ns:
                continue
            newer_call = any(c.who.fence > who.fence and c.begin.t_ns < begun for c in calls)
            newer_claim = any(
                o.what == who.run and o.fence > who.fence and o.since_ns < begun for o in claims
            )
            if newer_call or newer_claim:
                yield call
