"""The rungs, in the story's order."""

from __future__ import annotations

from comparison.ladder.rung import Rung
from comparison.ladder.rungs import (
    r01_select_then_update,
    r02_no_skip_locked,
    r03_unowned,
    r04_no_expiry,
    r05_no_fence,
    r06_reused_name,
    r07_cancel_by_killing,
    r08_no_progress,
    r09_counted_limit,
    r10_no_limit,
)
from two_workers import BadInput

RUNGS = (
    r01_select_then_update.RUNG,
    r02_no_skip_locked.RUNG,
    r03_unowned.RUNG,
    r04_no_expiry.RUNG,
    r05_no_fence.RUNG,
    r06_reused_name.RUNG,
    r07_cancel_by_killing.RUNG,
    r08_no_progress.RUNG,
    r09_counted_limit.RUNG,
    r10_no_limit.RUNG,
)


def find_rung(number: int) -> Rung:
    """Raises `BadInput` for a number that no rung has."""
    for rung in RUNGS:
        if rung.number == number:
            return rung
    raise BadInput(f"no rung {number}; there are 1 to {len(RUNGS)}")
