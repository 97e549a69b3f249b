"""The figures, computed from the evidence of one arm. Durations in seconds.

- *takeover*: from the fault to the first call, by another worker, of a step that the victim was in
- *productive*: from the fault to the first call of a step that no one had completed before it
- a *duplicate* is a second or later call of the same step that was executed; its cause is what
  became of the call before it
- a *zombie call* is one made under a fence older than one already seen for its step
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from comparison.arms import find_arm
from comparison.evidence import Cancellation, Case, FaultRecord
from comparison.faults import takeovers
from comparison.ledger import Call
from comparison.owner_checks import CLOCKS_NS, inv_fence, inv_lease, orphans
from comparison.stats import Summary, summarise
from two_workers import RunState

KINDS = ("kill", "pause", "silence")
CAUSES = ("aborted in flight", "lost result", "overlap", "retry", "replayed though recorded")


@dataclass(frozen=True)
class Recovery:
    """How long one orphaned run waited. None: that did not happen (censored)."""

    fault: int
    kind: str
    run: str
    takeover: float | None
    productive: float | None


@dataclass
class Duplicates:
    """Calls executed more than once. Waste in tokens and micro-dollars is a pair of bounds:
    only answers that reached a caller, or all that were begun (a vendor may bill either)."""

    calls: int = 0
    distinct: int = 0
    by_cause: dict[str, dict[str, int]] = field(
        default_factory=lambda: {cause: {"model": 0, "tool": 0, "report": 0} for cause in CAUSES}
    )
    tokens: list[int] = field(default_factory=lambda: [0, 0])
    micro_usd: list[int] = field(default_factory=lambda: [0, 0])
    micro_usd_spent: int = 0

    def count(self, kind: str) -> int:
        """Duplicates of one kind of call."""
        return sum(counts[kind] for counts in self.by_cause.values())

    @property
    def amplification(self) -> float:
        """Calls executed for each step that had to be."""
        return self.calls / max(self.distinct, 1)


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

    @property
    def writes_tried(self) -> int:
        return max(self.writes_refused, self.late_arrivals) + self.writes_accepted


@dataclass(frozen=True)
class CancelTimes:
    """One cancellation, in seconds from its request. None: no call was begun or ended after it."""

    run: str
    case: str
    acknowledged: float
    ended: float | None
    last_begin: float | None
    last_end: float | None
    begun_after: int


@dataclass(frozen=True)
class Measures:
    """All figures of one arm."""

    arm: str
    faults: int
    recoveries: tuple[Recovery, ...]
    takeover: dict[str, Summary | None]
    productive: Summary | None
    in_band: dict[str, tuple[int, int]]
    duplicates: Duplicates
    zombies: Zombies
    cancellations: tuple[CancelTimes, ...]
    penalty: Summary | None
    runs_started: int
    runs_lost: int
    false_takeovers: int


def measure(case: Case) -> Measures:
    """Every figure of one arm."""
    evidence = case.evidence
    recoveries = tuple(_recoveries(case))
    final = {end.run for end in evidence.ends if end.state.is_final}
    return Measures(
        arm=evidence.arm,
        faults=sum(fault.landed for fault in evidence.faults),
        recoveries=recoveries,
        takeover={kind: _summary(recoveries, kind, "takeover") for kind in KINDS},
        productive=_summary(recoveries, "kill", "productive"),
        in_band={kind: _in_band(evidence.arm, recoveries, kind) for kind in KINDS},
        duplicates=_duplicates(case),
        zombies=_zombies(case),
        cancellations=tuple(_cancel_times(case, c) for c in evidence.cancellations),
        penalty=_penalty(case),
        runs_started=len(evidence.starts),
        runs_lost=len({start.run for start in evidence.starts} - final),
        false_takeovers=len(inv_lease(case).doubts),
    )


# Recovery.


def _recoveries(case: Case) -> Iterator[Recovery]:
    for fault in case.evidence.faults:
        if not fault.landed:
            continue
        taken = takeovers(case.calls.ledger.calls.values(), fault)
        for run in orphans(case, fault):
            yield Recovery(
                fault=fault.number,
                kind=fault.kind.partition("+")[0],
                run=run,
                takeover=_seconds(fault.after_ns, taken.get(run)),
                productive=_seconds(fault.after_ns, _first_new(case, fault, run)),
            )


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
    if fault.point == "reply" and fault.held_key is not None:
        done.add(fault.held_key)
    for call in calls:
        new = call.who.key not in done and call.who.worker != fault.victim
        if new and call.begin.t_ns > fault.after_ns:
            return call.begin.t_ns
    return None


def _summary(recoveries: tuple[Recovery, ...], kind: str, what: str) -> Summary | None:
    blocks: dict[int, list[float]] = defaultdict(list)
    for recovery in recoveries:
        seconds = getattr(recovery, what)
        if recovery.kind == kind and seconds is not None:
            blocks[recovery.fault].append(seconds)
    return summarise(list(blocks.values()))


def _in_band(arm: str, recoveries: tuple[Recovery, ...], kind: str) -> tuple[int, int]:
    low, high = find_arm(arm).predict(kind)
    mine = [r.takeover for r in recoveries if r.kind == kind and r.takeover is not None]
    return sum(low <= seconds <= high for seconds in mine), len(mine)


# Duplicates.


def _duplicates(case: Case) -> Duplicates:
    found = Duplicates()
    recorded = {write.key: write.t_ns for write in case.evidence.writes}
    killed = {
        f.victim: f.after_ns for f in case.evidence.faults if f.landed and not f.spares_its_victim
    }
    for key, calls in case.calls.by_key.items():
        executed = [call for call in calls if call.executed]
        found.calls += len(executed)
        found.distinct += bool(executed)
        found.micro_usd_spent += sum(call.end.micro_usd for call in executed if call.end)
        for earlier, later in pairwise(executed):
            cause = _cause(earlier, later, recorded.get(key), killed)
            found.by_cause[cause][later.begin.kind] += 1
            if earlier.end is not None:
                tokens = earlier.end.tokens_in + earlier.end.tokens_out
                found.tokens[1] += tokens
                found.micro_usd[1] += earlier.end.micro_usd
                if earlier.delivered:
                    found.tokens[0] += tokens
                    found.micro_usd[0] += earlier.end.micro_usd
    return found


def _cause(earlier: Call, later: Call, recorded: int | None, killed: dict[str, int]) -> str:
    """Why `later` had to be made, or was made, although `earlier` was."""
    if recorded is not None and later.begin.t_ns > recorded + CLOCKS_NS:
        return "replayed though recorded"
    if earlier.end is not None and earlier.end.outcome == "failed":
        return "retry"
    if killed.get(earlier.who.worker, later.begin.t_ns) >= later.begin.t_ns:
        same = earlier.who.worker == later.who.worker
        return "retry" if same else "overlap"  # the earlier owner was alive: two at a time
    return "lost result" if earlier.delivered else "aborted in flight"


# Zombies.


def _zombies(case: Case) -> Zombies:
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


# Cancellations and makespan.


def _cancel_times(case: Case, cancellation: Cancellation) -> CancelTimes:
    asked = cancellation.requested_ns
    calls = [call for call in case.calls.by_run.get(cancellation.run, []) if call.executed]
    begins = [call.begin.t_ns for call in calls if call.begin.t_ns > asked]
    ends = [call.end.t_ns for call in calls if call.end is not None and call.end.t_ns > asked]
    acknowledged = _seconds(asked, cancellation.acknowledged_ns)
    assert acknowledged is not None
    return CancelTimes(
        run=cancellation.run,
        case=cancellation.case,
        acknowledged=acknowledged,
        ended=_seconds(asked, cancellation.ended_ns),
        last_begin=_seconds(asked, max(begins, default=None)),
        last_end=_seconds(asked, max(ends, default=None)),
        begun_after=sum(t > cancellation.acknowledged_ns for t in begins),
    )


def _penalty(case: Case) -> Summary | None:
    """How much longer the runs that a fault hit took than their fault-free twins."""
    evidence = case.evidence
    ends = {end.run: end for end in evidence.ends}
    took = {
        start.run: (ends[start.run].t_ns - start.t_ns) / 1e9
        for start in evidence.starts
        if start.run in ends and ends[start.run].state is RunState.SUCCEEDED
    }
    twins = {s.question: took[s.run] for s in evidence.starts if s.twin and s.run in took}
    question = {start.run: start.question for start in evidence.starts}
    blocks = [
        [took[run] - twins[question[run]] for run in fault.owned if run in took]
        for fault in evidence.faults
        if fault.landed
    ]
    return summarise(blocks) if twins else None


def _seconds(since: int, until: int | None) -> float | None:
    return None if until is None else (until - since) / 1e9
