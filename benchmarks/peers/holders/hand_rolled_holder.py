"""Our PostgreSQL store: leases with heartbeats, crash detection, fenced writes, pushed cancels."""

from __future__ import annotations

from benchmarks.peers.holders.engines import engine_holder

HOLDER = engine_holder("hand_rolled", "DATABASE_URL", "HAND_ROLLED_CONCURRENCY")
