"""What convicts a rung: the comparison's own checks, and those that only a ladder can make.

A verdict needs evidence here too: the form of a rung that is right must *pass*, which takes a
situation in which it could have failed.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from comparison.checks import CHECKS
from comparison.faults import takeovers
from comparison.ladder.settings import BOUND
from comparison.ladder.trial import Trial
from comparison.verdicts import Check, Findings, Verdict

Judge = Callable[[Trial], Verdict]


def comparisons(invariant: str) -> Judge:
    """The comparison's check of that name."""
    [check] = [check for check in CHECKS if check.invariant == invariant]
    return lambda trial: check(trial.case)


def _own(invariant: str, rule: str, counts: str, judge: Callable[[Trial], Findings]) -> Judge:
    return lambda trial: Check(invariant, rule, counts, lambda _: judge(trial))(trial.case)


def _one_owner(trial: Trial) -> Findings:
    """Nobody claims a run from an owner whose lease lives, and no two work on it unharmed.

    The second rule needs the ledger alone: an engine in which nobody claims anything has no
    record that could convict it.
    """
    found = Findings(times=trial.contended, tested=trial.contended)
    for note in trial.notes:
        if note.event == "claim" and note.lease_left is not None and note.lease_left > 0:
            found.evaluate(
                f"{note.writer} claimed {note.run_id} while its owner's lease had "
                f"{note.lease_left:.1f} s left"
            )
    struck = {fault.victim for fault in trial.case.evidence.faults}
    for key, calls in trial.case.calls.by_key.items():
        workers = sorted({c.who.worker for c in calls if c.executed} - struck)
        shared = f"{key} was paid for by {' and by '.join(workers)}, and nothing had struck either"
        found.evaluate(shared if len(workers) > 1 else None, tested=False)
    return found


def _orphan(trial: Trial) -> Findings:
    """What a worker was in when it was struck is called by another within the bound."""
    found = Findings()
    for fault in trial.case.evidence.faults:
        if not fault.landed:
            found.doubts.append(f"fault {fault.number} did not land: {fault.problem}")
            continue
        taken = takeovers(trial.case.calls.ledger.calls.values(), fault)
        for run in fault.owned:
            at = taken.get(run)
            late = at is None or (at - fault.after_ns) / 1e9 > BOUND
            found.evaluate(
                f"{run} was with nobody {BOUND:g} s after its worker was lost ({fault.kind})"
                if late
                else None
            )
    return found


def _cap(trial: Trial) -> Findings:
    """Between claim and end, never more runs are running than the limit allows."""
    evidence = trial.case.evidence
    limit = int(evidence.settings["max_active"])
    ends = [(end.t_ns, -1, end.run) for end in evidence.ends if end.state.is_final]
    claims = [(claim.since_ns, 1, claim.what) for claim in evidence.ownerships]
    found, running = Findings(times=trial.contended, tested=trial.contended), 0
    for _, change, run in sorted(ends + claims):
        running += change
        over = change > 0 and running > limit
        found.evaluate(
            f"{run} was let in as number {running}; the limit is {limit}" if over else None,
            tested=False,
        )
    return found


def queue_age(trial: Trial) -> tuple[float, float, float]:
    """Seconds that runs waited for their claim: of the first quarter, of the last, and the bound.

    The bound is twice what a full queue needs at the pace that these very workers had.
    """
    evidence = trial.case.evidence
    claims = {claim.what: claim.since_ns for claim in reversed(evidence.ownerships)}
    ends = {end.run: end.t_ns for end in evidence.ends}
    started = [start for start in evidence.starts if start.run in claims]
    ages = [(claims[start.run] - start.t_ns) / 1e9 for start in started]
    service = median((ends[start.run] - claims[start.run]) / 1e9 for start in started)
    ahead = int(evidence.settings["max_waiting"]) / int(evidence.settings["workers"])
    quarter = max(1, len(ages) // 4)
    return median(ages[:quarter]), median(ages[-quarter:]), 2 * (ahead + 1) * service


def _bounded(trial: Trial) -> Findings:
    """At twice the capacity, who is let in does not wait longer than a full queue takes."""
    found = Findings()
    first, last, bound = queue_age(trial)
    grown = f"queue age grew from {first:.1f} s to {last:.1f} s; a full queue takes {bound:.1f} s"
    found.evaluate(grown if last > bound else None)
    return found


ONE_OWNER = _own("INV-CLAIM", "a run has one owner at a time", "races for a run", _one_owner)
ORPHAN = _own("INV-ORPHAN", "a lost worker's run is taken over in time", "lost workers", _orphan)
CAP = _own("INV-CAP", "never more runs at work than the limit", "races for the last slot", _cap)
BOUNDED = _own("INV-CAP", "under overload the queue stays bounded", "overloads", _bounded)
FENCE = comparisons("INV-FENCE")
CANCEL = comparisons("INV-CANCEL")
