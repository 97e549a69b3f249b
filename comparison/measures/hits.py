"""Every run that a fault hit: was it taken from its worker, and how much longer did it take?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from comparison.evidence import Case
from comparison.faults import takeovers
from two_workers import RunState


@dataclass(frozen=True)
class Hit:
    """One run that a fault hit. `penalty` is in seconds beyond its fault-free twin; None when it
    did not succeed, or its twin did not."""

    fault: int
    kind: str
    run: str
    taken: bool
    penalty: float | None


def hits(case: Case) -> Iterator[Hit]:
    """All of one campaign."""
    penalty = _penalties(case)
    for fault in case.evidence.faults:
        if not fault.landed:
            continue
        taken = takeovers(case.calls.ledger.calls.values(), fault)
        for run in fault.owned:
            yield Hit(fault.number, fault.kind, run, run in taken, penalty.get(run))


def _penalties(case: Case) -> dict[str, float]:
    """How much longer each run took than its twin, if both succeeded."""
    evidence = case.evidence
    ends = {end.run: end for end in evidence.ends}
    took = {
        start.run: (ends[start.run].t_ns - start.t_ns) / 1e9
        for start in evidence.starts
        if start.run in ends and ends[start.run].state is RunState.SUCCEEDED
    }
    twins = {s.question: took[s.run] for s in evidence.starts if s.twin and s.run in took}
    return {
        start.run: took[start.run] - twins[start.question]
        for start in evidence.starts
        if start.run in took and start.question in twins
    }
