"""What must be reached. Ratios are within one run on one machine; the rest is in seconds or MB."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from benchmarks.results import Estimate


@dataclass(frozen=True)
class Target:
    """A bound for a figure."""

    kind: Literal["at least", "at most"]
    bound: float
    unit: str = "×"

    def __str__(self) -> str:
        sign = "≥" if self.kind == "at least" else "≤"
        return f"{sign} {self.bound:g} {self.unit}"

    def is_reached(self, found: Estimate) -> bool:
        """Judged by the figure itself; its interval says how sure that is."""
        if self.kind == "at least":
            return found.value >= self.bound
        return found.value <= self.bound


NOOP_PGQUEUER = Target("at least", 1.5)
NOOP_DBOS = Target("at least", 40)
NOOP_ABSURD = Target("at least", 4)
STEPS_DBOS = Target("at least", 35)
STEPS_ABSURD = Target("at least", 4)
ENQUEUE_SINGLE = Target("at least", 1.5)
ENQUEUE_BULK = Target("at least", 1)
CLAIMS_PGBENCH = Target("at least", 0.5)
CLAIM_FLAT = Target("at most", 1.25)
SNAPSHOT_UNLIMITED = Target("at least", 0.7)
SNAPSHOT_LIMITED = Target("at least", 0.4)
TAKEOVER_P95 = Target("at most", 0.5, "s")
ZOMBIE_WRITES = Target("at most", 0, "writes")
ZOMBIE_WORK = Target("at most", 0.1, "s")
CANCEL_P95 = Target("at most", 0.1, "s")
TEMPORAL_BARE = Target("at least", 0.9)
WORLD_CALLS = Target("at least", 2_000, "calls/s")
MEMORY = Target("at most", 200, "MB")
