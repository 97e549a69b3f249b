"""The timings of every rung, in seconds: the arms' own, so that rung and arm can be compared."""

from __future__ import annotations

from comparison import arms

LEASE = arms.TIMEOUT
BEAT = arms.GAP
POLL = arms.POLL
PATIENCE = 3.0
"""Rung 8: without a recorded step for so long, a run is taken away from an owner that beats."""
BOUND = PATIENCE + 7.0
"""An orphan must be with another worker within this; generous, since machines are noisy."""
