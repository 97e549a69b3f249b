"""Records that a silence had withheld and that reached the server when their sender owned nothing.

The proxy knows that they came late and what the server said of them; the engine's record of owners
and the ledger know who the owner was by then. Of a worker that only beats there is none.
"""

from __future__ import annotations

from comparison.evidence import CLOCKS_NS, Case, LateRecord, RefusedWrite

ECHO_NS = 5_000_000_000
"""A worker that is told of a refusal says so in its log within this."""


def of_former_owners(case: Case) -> list[LateRecord]:
    """Those that the server has accepted or refused: what has no answer may never have arrived."""
    return [
        record
        for record in case.evidence.late_records or ()
        if record.outcome in ("accepted", "refused") and _had_lost_it(case, record)
    ]


def refused_by_their_word(case: Case) -> list[RefusedWrite]:
    """What workers say was refused, without the echo of what the proxies saw being refused."""
    said = sorted(case.evidence.refused_writes, key=lambda line: line.t_ns)
    for record in of_former_owners(case):
        echoes = (
            line
            for line in said
            if line.worker == record.worker and 0 <= line.t_ns - record.passed_ns <= ECHO_NS
        )
        echo = next(echoes, None) if record.outcome == "refused" else None
        if echo is not None:
            said.remove(echo)
    return said


def _had_lost_it(case: Case, record: LateRecord) -> bool:
    """True when somebody else owned the run, or had called for the step, before it was let through.

    A worker that was given its own work back is not told apart from one that kept it.
    """
    by_then = record.passed_ns - CLOCKS_NS
    owners = [o for o in case.claims.get(record.what, ()) if o.since_ns < by_then]
    if owners and owners[-1].worker != record.worker:
        return True
    calls = case.calls.by_key.get(record.what, [])
    mine = [call.who.fence for call in calls if call.who.worker == record.worker]
    return any(
        call.who.worker != record.worker
        and call.begin.t_ns < by_then
        and call.who.fence > min(mine, default=call.who.fence)
        for call in calls
    )
