"""The figures, computed from the evidence of one arm. Durations in seconds.

- *changed hands*: from the fault until the run was taken from its owner, as the engine records it
- *takeover*: from the fault to the first call, by another worker, of a step that the victim was in;
  if another had been at the run all along, to its first call of a later step
- *productive*: from the fault to the first call of a step that no one had completed before it
- a *duplicate* is a second or later call of the same step that was executed; its cause is what
  became of the call before it
- a *zombie call* is one made under a fence older than one already seen for its step
- the *penalty* of a run that a fault hit is its time beyond that of its fault-free twin
- *overhead* is what the engine adds when nothing breaks: time beside the calls, writes, actions
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median

from comparison import kinds
from comparison.arms import find_arm
from comparison.evidence import Case
from comparison.measures.cancels import CancelTimes, cancels
from comparison.measures.duplicates import CAUSES, Duplicates, duplicates
from comparison.measures.hits import Hit, hits
from comparison.measures.overhead import Overhead, overhead
from comparison.measures.recovery import Recovery, recoveries
from comparison.measures.zombies import Zombies, zombies
from comparison.owner_checks import takeovers_from_the_spared
from comparison.stats import Summary, Wait, summarise

__all__ = ["CAUSES", "ORPHANING", "OTHERS", "Measures", "measure", "pool"]

ORPHANING = tuple(kind for kind in kinds.KINDS if kind in kinds.TAKEN_AWAY and "+" not in kind)
"""The faults that cost their victim its work: somebody must take over, and that is timed."""
OTHERS = tuple(kind for kind in kinds.KINDS if kind not in kinds.TAKEN_AWAY)
"""The faults after which it may well keep it: it is counted how often it does."""
_APART = 10_000  # keeps the faults of pooled campaigns apart


@dataclass(frozen=True)
class Measures:
    """All figures of one arm: raw samples in the fields, what follows from them beside.

    `faults` counts those that landed, and `brought` are their kinds.
    """

    arm: str
    faults: int
    brought: tuple[str, ...]
    recoveries: tuple[Recovery, ...]
    duplicates: Duplicates
    zombies: Zombies
    cancellations: tuple[CancelTimes, ...]
    hits: tuple[Hit, ...]
    runs_started: int
    runs_lost: int
    false_takeovers: int
    overhead: Overhead

    @cached_property
    def takeover(self) -> dict[str, Summary | None]:
        """The time until somebody else called an interrupted step, by kind of fault."""
        return {kind: self.waits(kind) for kind in ORPHANING}

    def waits(self, kind: str) -> Summary | None:
        """The time until somebody else called an interrupted step, after one kind of fault."""
        return _by_fault([(r.fault, _wait(r, r.takeover)) for r in self.after(kind)])

    def changed_hands(self, kind: str) -> Summary | None:
        """The time until the run was taken from its owner, after one kind of fault."""
        return _by_fault([(r.fault, _wait(r, r.owned)) for r in self.after(kind)])

    @property
    def duplicates_per_orphan(self) -> float | None:
        """Duplicate calls of models and tools for each run that a fault orphaned, however many
        runs went on beside it. None without an orphan."""
        calls, orphans = self.duplicate_calls, len(self.recoveries)
        return calls / orphans if orphans else None

    @property
    def duplicate_calls(self) -> int:
        """Duplicate calls of models and tools; handing a report in twice is apart."""
        return self.duplicates.count("model") + self.duplicates.count("tool")

    @property
    def duplicates_of_orphans(self) -> int:
        """Those of the duplicate calls that were made for a run that some fault orphaned."""
        return sum(self.duplicates.by_run.get(run, 0) for run in {r.run for r in self.recoveries})

    @property
    def orphaned_by_need(self) -> int:
        """The orphaned runs that their fault had to cost their worker; INV-ORPHAN counts these."""
        return sum(r.kind.partition(",")[0] in ORPHANING for r in self.recoveries)

    @cached_property
    def productive(self) -> Summary | None:
        """The time from a kill to the first new step, of the runs that had one left to do."""
        mine = [r for r in self.after("kill") if r.productive is not None or r.takeover is None]
        return _by_fault([(r.fault, _wait(r, r.productive)) for r in mine])

    def hit_by(self, *kinds: str) -> list[Hit]:
        """The runs that such faults hit."""
        return [hit for hit in self.hits if hit.kind in kinds]

    def penalty(self, *kinds: str) -> Summary | None:
        """How much longer the runs that such faults hit took than their fault-free twins."""
        return _by_fault(
            [(h.fault, Wait(h.penalty)) for h in self.hit_by(*kinds) if h.penalty is not None]
        )

    @cached_property
    def penalty_by_block(self) -> dict[int, float]:
        """The median penalty of each block: one plan, carried out on every arm."""
        blocks: dict[int, list[float]] = defaultdict(list)
        for hit in self.hit_by(*ORPHANING):
            if hit.penalty is not None:
                blocks[hit.fault // _APART + 1].append(hit.penalty)
        return {block: median(seconds) for block, seconds in sorted(blocks.items())}

    def after(self, kind: str) -> list[Recovery]:
        """The runs that a kind of fault orphaned."""
        return [recovery for recovery in self.recoveries if recovery.kind == kind]

    def never_taken_over(self, kind: str) -> list[float]:
        """For how long those runs were watched whose waiting was still going on at the end:
        censored, not dropped."""
        return [recovery.watched for recovery in self.after(kind) if recovery.takeover is None]

    def shared(self, kind: str) -> int:
        """How many of those runs had a second worker at them when the fault came."""
        return sum(recovery.shared for recovery in self.after(kind))

    def until_all_had_an_owner(self, kind: str) -> list[Wait]:
        """One wait for each fault of a kind: until the last of its orphans was taken over."""
        faults: dict[int, list[Wait]] = defaultdict(list)
        for recovery in self.after(kind):
            faults[recovery.fault].append(_wait(recovery, recovery.takeover))
        return [
            Wait(max(wait.seconds for wait in waits), all(wait.over for wait in waits))
            for waits in faults.values()
        ]

    def in_band(self, kind: str) -> tuple[int, int]:
        """How many changes of owner fell into the predicted band, of how many."""
        low, high = find_arm(self.arm).predict(kind)
        mine = [r.owned for r in self.after(kind) if r.owned is not None]
        return sum(low <= seconds <= high for seconds in mine), len(mine)


def measure(case: Case) -> Measures:
    """Every figure of one campaign."""
    evidence = case.evidence
    final = {end.run for end in evidence.ends if end.state.is_final}
    return Measures(
        arm=evidence.arm,
        faults=sum(fault.landed for fault in evidence.faults),
        brought=tuple(sorted({fault.kind for fault in evidence.faults if fault.landed})),
        recoveries=tuple(recoveries(case)),
        duplicates=duplicates(case),
        zombies=zombies(case),
        cancellations=tuple(cancels(case)),
        hits=tuple(hits(case)),
        runs_started=len(evidence.starts),
        runs_lost=len({start.run for start in evidence.starts} - final),
        false_takeovers=len(takeovers_from_the_spared(case)),
        overhead=overhead(case),
    )


def pool(parts: Sequence[Measures]) -> Measures:
    """The figures of several campaigns of one arm together; each fault stays a block."""
    first, *others = parts
    for number, other in enumerate(others, 1):
        shift = number * _APART
        first = Measures(
            arm=first.arm,
            faults=first.faults + other.faults,
            brought=tuple(sorted({*first.brought, *other.brought})),
            recoveries=(
                *first.recoveries,
                *(replace(r, fault=r.fault + shift) for r in other.recoveries),
            ),
            duplicates=first.duplicates + other.duplicates,
            zombies=first.zombies + other.zombies,
            cancellations=first.cancellations + other.cancellations,
            hits=(*first.hits, *(replace(h, fault=h.fault + shift) for h in other.hits)),
            runs_started=first.runs_started + other.runs_started,
            runs_lost=first.runs_lost + other.runs_lost,
            false_takeovers=first.false_takeovers + other.false_takeovers,
            overhead=first.overhead + other.overhead,
        )
    return first


def _wait(recovery: Recovery, seconds: float | None) -> Wait:
    return Wait(recovery.watched, over=False) if seconds is None else Wait(seconds)


def _by_fault(samples: Sequence[tuple[int, Wait]]) -> Summary | None:
    faults: dict[int, list[Wait]] = defaultdict(list)
    for fault, wait in samples:
        faults[fault].append(wait)
    return summarise(list(faults.values()))
