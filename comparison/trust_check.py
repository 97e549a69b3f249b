"""INV-TRUST: a worker that was out of touch for longer than its trust lasts begins no further call.

A worker that cannot have heard of its server for the whole timeout has to stop by itself, before
somebody else starts. Seen from outside:

- while it is cut off, but runs, it begins nothing once the timeout has passed: nobody can have
  renewed anything for it;
- once it is back, it begins nothing that has another owner by then.

What is not seen is the moment at which it looked: a worker may be frozen between that look and the
call, and the call leaves as it wakes. So a call that comes with the waking, or within
`ON_ITS_WAY_NS` after it, is no violation and is only counted; the fence is there for it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

from comparison.arms import find_arm
from comparison.evidence import Case, FaultRecord
from comparison.faults import takeovers
from comparison.kinds import KINDS, FaultKind
from comparison.ledger import NO_FENCE, Call
from comparison.run_checks import ON_ITS_WAY_NS
from comparison.verdicts import Check, Findings

CUT_OFF: tuple[FaultKind, ...] = ("silence", "mute", "deaf")
"""Faults under which a worker runs on. Under the others it cannot begin anything before it wakes,
which is a little earlier than the harness hears of it."""


def inv_trust(case: Case) -> Findings:
    """Judged for each run that a worker lost, or must have given up, while it was out of touch."""
    found = Findings()
    timeout_ns = round(find_arm(case.evidence.arm).timeout * 1e9)
    waking = 0
    for fault in case.evidence.faults:
        if not (fault.landed and fault.resumed_ns and KINDS[fault.kind].returns):
            continue
        lost = set(_lost(case, fault, timeout_ns))
        late, at_once = _begun_without_trust(case, fault, timeout_ns)
        waking += len(at_once)
        for run in sorted({*lost, *late}):
            problem = None
            if calls := late.get(run):
                who = calls[0].who
                problem = f"{who.worker} began {who.key} when it had lost touch for too long"
            found.evaluate(problem)
    if waking:
        found.remark = f"{waking} calls may have been frozen on their way"
    return found


def _lost(case: Case, fault: FaultRecord, timeout_ns: int) -> Iterator[str]:
    """Runs of the victim that had another owner as it came back, or that it was away for too long
    to be the owner of."""
    assert fault.resumed_ns is not None
    taken = takeovers(case.calls.ledger.calls.values(), fault)
    for run in fault.owned:
        claims = [claim.since_ns for claim in case.claims.get(run, ())]
        passed_on = any(fault.after_ns < t_ns < fault.resumed_ns for t_ns in claims)
        taken_over = taken.get(run, fault.resumed_ns) < fault.resumed_ns
        if passed_on or taken_over or fault.resumed_ns - fault.after_ns > timeout_ns:
            yield run


def _begun_without_trust(
    case: Case, fault: FaultRecord, timeout_ns: int
) -> tuple[dict[str, list[Call]], list[Call]]:
    """The victim's calls that began too late, by run, and those that left as it woke."""
    assert fault.resumed_ns is not None
    late: dict[str, list[Call]] = defaultdict(list)
    waking: list[Call] = []
    struck_again = _struck_again(case, fault)
    for call in case.calls.ledger.calls.values():
        begun = call.begin.t_ns
        if call.who.worker != fault.victim:
            continue
        if not fault.after_ns + timeout_ns < begun < struck_again:
            continue
        if fault.kind in CUT_OFF and begun < fault.resumed_ns:
            late[call.who.run].append(call)
        elif has_another_owner(case, call, begun):
            frozen = begun <= fault.resumed_ns + ON_ITS_WAY_NS
            (waking if frozen else late[call.who.run]).append(call)
    return late, waking


def _struck_again(case: Case, fault: FaultRecord) -> float:
    """When the next fault met the same worker, which answers for what leaves as it wakes then."""
    later = (f.before_ns for f in case.evidence.faults if f.victim == fault.victim)
    return min((t_ns for t_ns in later if t_ns > fault.after_ns), default=math.inf)


def has_another_owner(case: Case, call: Call, t_ns: int) -> bool:
    """True when somebody else had claimed the run, or called for the step, by `t_ns`."""
    claims = [claim for claim in case.claims.get(call.who.run, ()) if claim.since_ns <= t_ns]
    if call.who.fence == NO_FENCE:  # then only the last claim says whose the run is
        return bool(claims) and claims[-1].worker != call.who.worker
    calls = [c for c in case.calls.by_key[call.who.key] if c.begin.t_ns <= t_ns]
    fences = [*(claim.fence for claim in claims), *(c.who.fence for c in calls)]
    return any(fence > call.who.fence for fence in fences)


TRUST_CHECK = Check(
    "INV-TRUST", "out of touch for too long, nobody begins a call", "runs at stake", inv_trust
)
