"""Calls that were executed more than once: how many, why, and what they cost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise

from comparison.evidence import CLOCKS_NS, Case
from comparison.kinds import DEADLY
from comparison.ledger import Call, run_of

CAUSES = ("aborted in flight", "lost result", "overlap", "retry", "replayed though recorded")


@dataclass
class Duplicates:
    """Calls executed more than once. Waste in tokens and micro-dollars is a pair of bounds:
    only answers that reached a caller, or all that were begun (a vendor may bill either).
    `tokens_received` are those of the answers alone. `micro_usd_hit` is all that was spent on the
    runs that faults hit, what was paid for nothing included. `by_run` are calls of models and
    tools."""

    calls: int = 0
    distinct: int = 0
    by_cause: dict[str, dict[str, int]] = field(
        default_factory=lambda: {cause: {"model": 0, "tool": 0, "report": 0} for cause in CAUSES}
    )
    by_run: dict[str, int] = field(default_factory=dict)
    tokens: list[int] = field(default_factory=lambda: [0, 0])
    tokens_received: list[int] = field(default_factory=lambda: [0, 0])
    micro_usd: list[int] = field(default_factory=lambda: [0, 0])
    micro_usd_hit: int = 0

    def count(self, kind: str) -> int:
        """Duplicates of one kind of call."""
        return sum(counts[kind] for counts in self.by_cause.values())

    def __add__(self, other: Duplicates) -> Duplicates:
        """Both together."""
        return Duplicates(
            calls=self.calls + other.calls,
            distinct=self.distinct + other.distinct,
            by_cause={
                cause: {kind: n + other.by_cause[cause][kind] for kind, n in counts.items()}
                for cause, counts in self.by_cause.items()
            },
            by_run=dict(Counter(self.by_run) + Counter(other.by_run)),
            tokens=_added(self.tokens, other.tokens),
            tokens_received=_added(self.tokens_received, other.tokens_received),
            micro_usd=_added(self.micro_usd, other.micro_usd),
            micro_usd_hit=self.micro_usd_hit + other.micro_usd_hit,
        )


def duplicates(case: Case) -> Duplicates:
    """All duplicates of one campaign."""
    found = Duplicates()
    recorded = {write.key: write.t_ns for write in case.evidence.writes}
    hit = {run for fault in case.evidence.faults if fault.landed for run in fault.owned}
    killed = {f.victim: f.after_ns for f in case.evidence.faults if f.landed and f.kind in DEADLY}
    for key, calls in case.calls.by_key.items():
        executed = [call for call in calls if call.executed]
        found.calls += len(executed)
        found.distinct += bool(executed)
        if run_of(key) in hit:
            found.micro_usd_hit += sum(call.end.micro_usd for call in executed if call.end)
        for earlier, later in pairwise(executed):
            cause = _cause(earlier, later, recorded.get(key), killed)
            found.by_cause[cause][later.begin.kind] += 1
            if later.begin.kind != "report":
                found.by_run[run_of(key)] = found.by_run.get(run_of(key), 0) + 1
            if earlier.end is not None:
                for bound in (0, 1) if earlier.delivered else (1,):
                    found.tokens[bound] += earlier.end.tokens_in + earlier.end.tokens_out
                    found.tokens_received[bound] += earlier.end.tokens_out
                    found.micro_usd[bound] += earlier.end.micro_usd
    return found


def _added(one: list[int], other: list[int]) -> list[int]:
    return [a + b for a, b in zip(one, other, strict=True)]


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
