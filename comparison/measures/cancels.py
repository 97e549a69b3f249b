"""From the request of a cancellation to the last thing that was done for the run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from comparison.evidence import Cancellation, Case
from comparison.measures.recovery import seconds_between


@dataclass(frozen=True)
class CancelTimes:
    """One cancellation, in seconds from its request. None: no call was begun or ended after it."""

    run: str
    case: str
    acknowledged: float
    ended: float | None
    last_begin: float | None
    last_end: float | None


def cancels(case: Case) -> Iterator[CancelTimes]:
    """All cancellations of one campaign, but for those that found their run ended already."""
    for cancellation in case.evidence.cancellations:
        ended = cancellation.ended_ns
        if ended is None or ended > cancellation.requested_ns:
            yield cancel_times(case, cancellation)


def cancel_times(case: Case, cancellation: Cancellation) -> CancelTimes:
    """The times of one cancellation."""
    asked = cancellation.requested_ns
    calls = [call for call in case.calls.by_run.get(cancellation.run, []) if call.executed]
    begins = [call.begin.t_ns for call in calls if call.begin.t_ns > asked]
    ends = [call.end.t_ns for call in calls if call.end is not None and call.end.t_ns > asked]
    acknowledged = seconds_between(asked, cancellation.acknowledged_ns)
    assert acknowledged is not None
    return CancelTimes(
        run=cancellation.run,
        case=cancellation.case,
        acknowledged=acknowledged,
        ended=seconds_between(asked, cancellation.ended_ns),
        last_begin=seconds_between(asked, max(begins, default=None)),
        last_end=seconds_between(asked, max(ends, default=None)),
    )
