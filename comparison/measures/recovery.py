"""How long an orphaned run waited for its next owner, and for its next step forward."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from comparison.evidence import Case, FaultRecord
from comparison.faults import takeovers
from comparison.kinds import TAKEN_AWAY
from comparison.ledger import batch_of, run_of
from comparison.owner_checks import orphans


@dataclass(frozen=True)
class Recovery:
    """How long one orphaned run waited. None: that did not happen in the `watched` seconds that
    the record goes on after the fault (censored).

    `kind` is that of the fault; of a run that was between two steps it is `KIND, between steps`:
    there another law holds, on Temporal, than for a step that was under way.
    `owned` is when it changed hands: by the engine's record of owners, or by the call, if that was
    sooner (of a step's attempts Temporal records only the last). `takeover` is that call.
    A run is `shared` when another worker had been at it all along, and went on past what was
    struck: its `takeover` is when that one did. It would be wrong to call it left alone.
    """

    fault: int
    kind: str
    run: str
    owned: float | None
    takeover: float | None
    productive: float | None
    watched: float
    shared: bool = False


def recoveries(case: Case) -> Iterator[Recovery]:
    """Every run that a fault orphaned, or, if its victim may well keep its work, took from it."""
    evidence = case.evidence
    over = evidence.converged_ns or evidence.healed_ns + round(evidence.convergence_bound * 1e9)
    for fault in case.evidence.faults:
        if not fault.landed:
            continue
        taken = takeovers(case.calls.ledger.calls.values(), fault)
        kind = fault.kind.partition("+")[0]
        between = None if fault.answered is None else run_of(fault.answered)
        for run in orphans(case, fault):
            if fault.kind not in TAKEN_AWAY and run not in taken:
                continue
            called = taken.get(run)
            ahead = _gone_on(case, fault, run) if called is None else None
            went_on = ahead if called is None else called
            yield Recovery(
                fault=fault.number,
                kind=f"{kind}, between steps" if run == between else kind,
                run=run,
                owned=seconds_between(fault.after_ns, _owned(case, fault, run, went_on)),
                takeover=seconds_between(fault.after_ns, went_on),
                productive=seconds_between(fault.after_ns, _first_new(case, fault, run)),
                watched=(over - fault.after_ns) / 1e9,
                shared=ahead is not None,
            )


def _gone_on(case: Case, fault: FaultRecord, run: str) -> int | None:
    """When another worker went on past every step that was struck, without calling one again.

    By its first call of a later batch: one of the same batch may be a sibling, which waits for
    nobody. After the last batch there is none; then by its records of calls that it was in too.
    Never once the victim has recorded one of them itself: that run has gone on without anybody.
    """
    struck = {key for key in fault.in_flight if run_of(key) == run}
    writes = [w for w in case.evidence.writes if w.key in struck and w.t_ns > fault.after_ns]
    if not struck or any(write.worker == fault.victim for write in writes):
        return None
    calls = case.calls.by_run.get(run, [])
    later = [
        call.begin.t_ns
        for call in calls
        if call.begin.t_ns > fault.after_ns
        and call.who.worker != fault.victim
        and batch_of(call.who.key) > max(map(batch_of, struck))
    ]
    if later:
        return min(later)
    beside = {(c.who.key, c.who.worker) for c in calls if c.begin.t_ns <= fault.after_ns}
    recorded = {w.key: w.t_ns for w in writes if (w.key, w.worker) in beside}
    return max(recorded.values()) if recorded.keys() == struck else None


def _owned(case: Case, fault: FaultRecord, run: str, called: int | None) -> int | None:
    """When the run, or a step of it that the victim was in, was taken from its owner."""
    changed = [
        owner.since_ns
        for owner in case.evidence.ownerships
        if owner.since_ns > fault.after_ns
        and (owner.what == run or (run_of(owner.what) == run and _was_at(owner.what, fault)))
    ]
    return min([*changed, *([] if called is None else [called])], default=None)


def _was_at(key: str, fault: FaultRecord) -> bool:
    """True for a step that the victim was in, or, between two steps, for what comes next."""
    if fault.answered is None or run_of(key) != run_of(fault.answered):
        return key in fault.in_flight
    return key == fault.answered or batch_of(key) > batch_of(fault.answered)


def _first_new(case: Case, fault: FaultRecord, run: str) -> int | None:
    """When somebody else first called, in this run, a step that nobody had completed before.

    A step whose reply was held had been carried out and paid: calling it again is not progress.
    """
    calls = case.calls.by_run.get(run, [])
    done = {
        call.who.key
        for call in calls
        if call.end is not None
        and call.end.outcome == "answered"
        and call.end.t_ns <= fault.before_ns
    }
    if fault.point in ("reply", "finish", "record", "between") and fault.held_key is not None:
        done.add(fault.held_key)
    for call in calls:
        new = call.who.key not in done and call.who.worker != fault.victim
        if new and call.begin.t_ns > fault.after_ns:
            return call.begin.t_ns
    return None


def seconds_between(since: int, until: int | None) -> float | None:
    """Nanoseconds to seconds; None stays None."""
    return None if until is None else (until - since) / 1e9
