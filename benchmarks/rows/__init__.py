"""The rows of the table, in the order in which they are measured: ownership first."""

from __future__ import annotations

from benchmarks.bench import Row
from benchmarks.rows import ownership, store, throughput

ROWS: dict[str, Row] = {
    "takeover": ownership.takeover,
    "takeover-at-defaults": ownership.takeover_at_defaults,
    "zombie": ownership.zombie,
    "cancel": ownership.cancel,
    "flat-claims": store.flat_claims,
    "noop": throughput.noop,
    "steps": throughput.steps,
    "enqueue": throughput.enqueue,
    "claims": throughput.claims,
    "snapshot": store.snapshot,
    "temporal": throughput.temporal,
    "world": store.world,
    "memory": store.memory,
    "growth": store.growth,
}

NOT_QUICK = {"steps", "temporal", "memory", "growth"}
"""Left out of a quick run."""

OWNERSHIP_ROWS = ("takeover", "takeover-at-defaults", "zombie", "cancel")
PATIENT = {"takeover-at-defaults"}
"""Left out unless asked for: it watches for five minutes."""
