"""Temporal, through our temporal_version: an activity that beats, on a development server."""

from __future__ import annotations

from benchmarks.peers.holders.engines import engine_holder

HOLDER = engine_holder("temporal", "TEMPORAL_ADDRESS", "TEMPORAL_VERSION_CONCURRENCY")
