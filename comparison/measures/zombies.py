"""What workers that were thought dead did when they came back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass

from comparison.evidence import Case, FaultRecord, Ownership
from comparison.faults import takeovers
from comparison.late import of_former_owners, refused_by_their_word
from comparison.ledger import Call
from comparison.owner_checks import inv_fence


@dataclass(frozen=True)
class Zombies:
    """What workers that lived on did after somebody else had taken over their work.

    A write is known to have been *tried* when it was accepted, when the engine refused it by the
    worker's own log, or when it is a *late record*: a silence withheld it, it was let through after
    the takeover, and the proxy saw the server's answer. `unfollowed` are silences after whose
    takeover withheld bytes came, of an earlier version, which did not follow what was in them.
    """

    spared: int
    calls_made: int
    calls_refused: int
    late_records: int
    late_records_refused: int
    writes_refused: int
    writes_tried: int
    writes_accepted: int
    unfollowed: int

    def __add__(self, other: Zombies) -> Zombies:
        """Both together."""
        return Zombies(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


def zombies(case: Case) -> Zombies:
    """All zombies of one campaign."""
    evidence = case.evidence
    spared = [f for f in evidence.faults if f.spares_its_victim and f.landed and f.resumed_ns]
    made = [call for fault in spared for call in _zombie_calls(case, fault)]
    victims = {fault.victim for fault in spared}
    taken = [f for f in spared if takeovers(case.calls.ledger.calls.values(), f)]
    late = of_former_owners(case)
    refused = sum(record.outcome == "refused" for record in late)
    besides = sum(line.worker in victims for line in refused_by_their_word(case))
    accepted = len(inv_fence(case).violations)
    unfollowed = taken if evidence.late_records is None else []
    return Zombies(
        spared=len(spared),
        calls_made=len(made),
        calls_refused=sum(call.refused for call in made),
        late_records=len(late),
        late_records_refused=refused,
        writes_refused=sum(line.worker in victims for line in evidence.refused_writes),
        writes_tried=accepted + refused + besides,
        writes_accepted=accepted,
        unfollowed=sum(fault.late_bytes > 0 for fault in unfollowed),
    )


def _zombie_calls(case: Case, fault: FaultRecord) -> Iterator[Call]:
    """Calls of a victim that came back, for work that somebody newer had claimed or called for."""
    assert fault.resumed_ns is not None
    for calls in case.calls.by_key.values():
        for call in calls:
            if call.who.worker != fault.victim or call.begin.t_ns < fault.resumed_ns:
                continue
            begun, fence = call.begin.t_ns, call.who.fence
            newer = any(c.who.fence > fence and c.begin.t_ns < begun for c in calls)
            owner = _owner(case, call.who.run, begun)
            lost = owner is not None and owner.fence > fence and owner.worker != fault.victim
            if newer or lost:
                yield call


def _owner(case: Case, run: str, t_ns: int) -> Ownership | None:
    """Who owned a run at a time, where the engine has claims of whole runs on record."""
    claims = [claim for claim in case.claims.get(run, ()) if claim.since_ns < t_ns]
    return claims[-1] if claims else None
