"""The invariants of ownership: claimed once, fenced, resumed from the record, reclaimed in time.

Where an engine keeps a record of ownership it is used; the ledger is used always, because it is
the one witness that neither engine can talk into anything.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from comparison.arms import find_arm
from comparison.evidence import CLOCKS_NS, Case, FaultRecord, Write
from comparison.faults import takeovers
from comparison.kinds import JOINING, TAKEN_AWAY
from comparison.late import of_former_owners, refused_by_their_word
from comparison.ledger import NO_FENCE, Call, run_of
from comparison.verdicts import Check, Findings

ALLOWANCE = 10.0
"""Seconds beyond the predicted band that a takeover may take on a busy machine."""
SILENT = re.compile(r"expired|died|stuck|outage|timeout", re.IGNORECASE)
"""How the engines say that they had not heard of an owner, or of its progress, in time."""
SOON_NS = 1_000_000_000
"""A cancellation that goes with a fault is asked for within this; then nobody need take over."""


def inv_claim(case: Case) -> Findings:
    """One fence, one owner; where claims are on record, each raises the generation by one."""
    found = Findings()
    owners: dict[tuple[object, ...], set[str]] = defaultdict(set)
    for call in case.calls.ledger.calls.values():
        owners[call.who.key, call.who.fence].add(call.who.worker)
    for (key, fence), workers in owners.items():
        shared = f"{key}: fence {fence} is held by {' and '.join(sorted(workers))}"
        found.evaluate(shared if len(workers) > 1 else None, tested=_contested(case, str(key)))
    for what, claims in case.claims.items():
        for earlier, later in pairwise(claims):
            rose = later.fence[-1] == earlier.fence[-1] + 1
            found.evaluate(
                None
                if rose
                else f"{what}: generation {earlier.fence} was followed by {later.fence}"
            )
    return found


def inv_fence(case: Case) -> Findings:
    """No write is recorded for an owner after a newer one has claimed the work or called."""
    found = Findings()
    # Only an owner that is alive when its successor works can write too late.
    spared = [f for f in case.evidence.faults if f.spares_its_victim and f.landed]
    survived = {key for fault in spared for key in fault.in_flight if _contested(case, key)}
    convicted = set[str]()
    for write in case.evidence.writes:
        newer = [
            claim
            for claim in case.claims.get(run_of(write.key), [])
            if claim.fence > write.fence and claim.since_ns + CLOCKS_NS < write.t_ns
        ]
        calls = [
            call
            for call in case.calls.by_key.get(write.key, [])
            if call.who.fence > write.fence and call.begin.t_ns + CLOCKS_NS < write.t_ns
        ]
        stale = f"{write.key}: the write of {write.worker} under {write.fence} was accepted late"
        found.evaluate(stale if newer or calls else None, tested=write.key in survived)
        if newer or calls:
            convicted |= {write.key, run_of(write.key)}
    for record in of_former_owners(case):
        if record.outcome == "refused":
            found.evaluate(None)
        elif record.what not in convicted:  # the record has it, but not as what it was
            found.evaluate(f"{record.what}: the server accepted a late record of {record.worker}")
    for _ in refused_by_their_word(case):
        found.evaluate(None)  # a stale write that was tried, and refused
    return found


def inv_resume(case: Case) -> Findings:
    """A recorded step is never executed again by whoever owns the run then.

    An engine without a fence cannot say that a caller was not the owner: each of its calls counts.
    """
    found = Findings()
    for write in case.evidence.writes:
        again = [
            call
            for call in case.calls.by_key.get(write.key, [])
            if call.executed
            and (call.who.fence >= write.fence or call.who.fence == NO_FENCE)
            and call.begin.t_ns > write.t_ns + CLOCKS_NS
        ]
        problem = None
        if again:
            problem = f"{write.key} was recorded, and called again by {again[0].who.worker}"
        found.evaluate(problem, tested=_resumed_later(case, write))
    return found


def inv_orphan(case: Case) -> Findings:
    """A run that lost its worker is taken from it within the predicted band and an allowance."""
    found = Findings()
    arm = find_arm(case.evidence.arm)
    in_the_end = {fault.number for fault in case.evidence.faults if fault.landed}
    for fault in case.evidence.faults:
        if not fault.landed:
            if fault.number not in in_the_end:
                found.doubts.append(f"fault {fault.number} did not land: {fault.problem}")
            continue
        if fault.kind not in TAKEN_AWAY:
            continue  # its victim may well keep its work
        bound = arm.predict(fault.kind)[1] + ALLOWANCE
        taken = takeovers(case.calls.ledger.calls.values(), fault)
        for run in orphans(case, fault):
            times = [t for t in (*_given_to_others(case, fault, run), taken.get(run)) if t]
            late = not times or (min(times) - fault.after_ns) / 1e9 > bound
            problem = f"{run} was not taken over within {bound:g} s of fault {fault.number}"
            found.evaluate(problem if late else None)
    return found


def _given_to_others(case: Case, fault: FaultRecord, run: str) -> Iterator[int]:
    """When a run, or a step of it that was struck, was somebody else's by the engine's record.

    A run may be taken from a dead owner and then made to wait (a suspect that is to run alone,
    say): the record of ownership shows the first, the ledger only the end. And where nothing keeps
    two workers from one run, the other may hand in the step without taking anything over.
    """
    struck = {run, *(key for key in fault.in_flight if run_of(key) == run)}
    for owner in case.evidence.ownerships:
        if owner.what in struck and owner.since_ns > fault.after_ns:
            yield owner.since_ns
    for write in case.evidence.writes:
        if write.key in struck and write.worker != fault.victim and write.t_ns > fault.after_ns:
            yield write.t_ns


def orphans(case: Case, fault: FaultRecord) -> list[str]:
    """Runs that a fault left with unfinished work that somebody must take over.

    A run between two steps is one of them: somebody must begin the next. Not those whose
    cancellation was asked for before the takeover, and not those whose step the victim still
    recorded in the instant of the fault.
    """
    instant = fault.after_ns + CLOCKS_NS
    recorded = {write.key for write in case.evidence.writes if write.t_ns <= instant}
    soon = fault.after_ns + SOON_NS
    cancelled = {c.run for c in case.evidence.cancellations if c.requested_ns < soon}
    unfinished = {run_of(key) for key in fault.in_flight if key not in recorded}
    if fault.answered is not None:
        unfinished.add(run_of(fault.answered))
    return sorted(unfinished - cancelled)


def inv_lease(case: Case) -> Findings:
    """Nobody who is heard of in time is taken over.

    From outside one sees who was struck by a fault, not who renewed in time. So a takeover from
    somebody left alone is excused when the engine has on record that it had not heard of the
    owner for the whole timeout (a starved machine does that), and undecided when it has not.
    """
    found = Findings()
    claims = {(o.what, o.fence): o.cause for o in case.evidence.ownerships}
    for earlier, later in takeovers_from_the_spared(case):
        cause = claims.get((later.who.run, later.who.fence), "")
        cause = claims.get((later.who.key, later.who.fence), cause)
        if not SILENT.search(cause):
            found.doubts.append(
                f"{later.who.key}: {earlier.who.worker} was taken over though no fault had struck "
                f"it, and the engine's record does not say why ({cause or 'no entry'})"
            )
    takeovers_seen = sum(_changes_of_owner(calls) for calls in case.calls.by_key.values())
    found.times = found.tested = takeovers_seen
    return found


def takeovers_from_the_spared(case: Case) -> list[tuple[Call, Call]]:
    """Pairs of calls of one step: the second by a new owner, the first by somebody left alone."""
    struck: dict[str, int] = {}
    all_struck: list[int] = []
    for fault in case.evidence.faults:
        if fault.victim and fault.kind not in JOINING:
            struck.setdefault(fault.victim, fault.before_ns)
        elif fault.landed and not fault.victim:
            all_struck.append(fault.before_ns)
    return [
        (earlier, later)
        for calls in case.calls.by_key.values()
        for earlier, later in pairwise(calls)
        if _is_takeover(earlier, later)
        and struck.get(earlier.who.worker, later.begin.t_ns) >= later.begin.t_ns
        and not any(earlier.begin.t_ns <= t_ns <= later.begin.t_ns for t_ns in all_struck)
    ]


def _is_takeover(earlier: Call, later: Call) -> bool:
    return later.who.fence > earlier.who.fence and later.who.worker != earlier.who.worker


def _changes_of_owner(calls: list[Call]) -> int:
    return sum(_is_takeover(earlier, later) for earlier, later in pairwise(calls))


def _contested(case: Case, key: str) -> bool:
    """True when more than one owner called for the step."""
    calls = case.calls.by_key.get(key, [])
    return len({(call.who.fence, call.who.worker) for call in calls}) > 1


def _resumed_later(case: Case, write: Write) -> bool:
    """True when somebody else worked on the run after the write: a chance to repeat the step."""
    return any(
        call.begin.t_ns > write.t_ns and call.who.worker != write.worker
        for call in case.calls.by_run.get(run_of(write.key), [])
    )


OWNER_CHECKS = (
    Check("INV-CLAIM", "one fence has one owner", "changes of owner", inv_claim),
    Check("INV-FENCE", "no write of an older owner is accepted", "contested writes", inv_fence),
    Check("INV-RESUME", "a recorded step is never executed again", "resumed steps", inv_resume),
    Check("INV-ORPHAN", "orphans are taken over within the bound", "orphaned runs", inv_orphan),
    Check("INV-LEASE", "nobody who is heard of in time is taken over", "takeovers", inv_lease),
)
