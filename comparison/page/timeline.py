"""The worst run of an arm, call by call: who worked on it, what was paid twice, where it broke."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from comparison.evidence import Case, FaultRecord
from comparison.kinds import DEADLY, KINDS
from comparison.ledger import Call
from comparison.measures.recovery import Recovery, recoveries

WIDTH, LANE = 720, 30
ONCE, REPEATED, REFUSED, WASTED = "#64748b", "#c2410c", "#6d28d9", "#fdba74"


def worst_run(cases: Sequence[Case]) -> tuple[Case, Recovery] | None:
    """The run that waited longest for its next owner; one that never got one comes first."""
    candidates = [(case, recovery) for case in cases for recovery in recoveries(case)]
    return max(
        candidates,
        key=lambda found: (found[1].takeover is None, found[1].takeover or found[1].watched),
        default=None,
    )


def caption(case: Case, wait: Recovery) -> str:
    """For how long the run waited, after which fault, and where that is in the picture."""
    fault = next(f for f in case.evidence.faults if f.landed and f.number == wait.fault)
    first = case.calls.by_run[wait.run][0].begin.t_ns
    waited = (
        f"nobody took it over in the {wait.watched:.1f} s that it was watched"
        if wait.takeover is None
        else f"it waited {wait.takeover:.1f} s for another worker"
    )
    until = _over(fault)
    if until is not None:
        lasted = f", and was over {(until - fault.after_ns) / 1e9:.1f} s later"
    elif KINDS[fault.kind].hits_all:
        lasted = "; when that was over is not on record"
    else:
        lasted = "; its worker did not come back"
    return (
        f"{wait.run}: {waited} after fault {fault.number} "
        f"({fault.kind}: {KINDS[fault.kind].what}), "
        f"which came {(fault.after_ns - first) / 1e9:.1f} s into this picture{lasted}."
    )


def timeline(case: Case, run: str) -> str:
    """Lanes are workers, bars are calls, shades are faults on the worker of that lane.

    A lane is a row of a table, so that its name can stay in sight while the picture is scrolled.
    """
    calls = case.calls.by_run[run]
    first = calls[0].begin.t_ns
    last = max(call.end.t_ns if call.end else call.begin.t_ns for call in calls)
    scale = WIDTH / max(last - first, 1)

    def x(t_ns: int) -> float:
        return (min(max(t_ns, first), last) - first) * scale

    rows = []
    for worker in dict.fromkeys(call.who.worker for call in calls):
        parts = []
        for fault in case.evidence.faults:
            if _hit(fault, worker) and fault.before_ns < last and _until(fault, last) > first:
                parts.append(_shade(fault, x(fault.before_ns), x(_until(fault, last))))
        for call in calls:
            if call.who.worker == worker:
                until = call.end.t_ns if call.end else last
                parts.append(_bar(case, call, x(call.begin.t_ns), x(until)))
        rows.append(_row(_short(worker), LANE, f"calls of {run} by {worker}", parts))
    seconds = (last - first) / 1e9
    axis = [
        '<text x="0" y="12">0 s</text>',
        f'<text x="{WIDTH}" y="12" text-anchor="end">{seconds:.1f} s</text>',
    ]
    rows.append(_row("", 16, "seconds", axis))
    return f'<table class="lanes">{"".join(rows)}</table>'


def _row(name: str, height: int, label: str, parts: Sequence[str]) -> str:
    return (
        f'<tr><th>{escape(name)}</th><td><svg viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(label)}">{"".join(parts)}</svg></td></tr>'
    )


def _short(worker: str) -> str:
    """A worker id is host-pid-nonce; the host is the same for all."""
    return "worker " + "-".join(worker.split("-")[-2:])


def _hit(fault: FaultRecord, worker: str) -> bool:
    return fault.landed and (fault.victim == worker or KINDS[fault.kind].hits_all)


def _over(fault: FaultRecord) -> int | None:
    """When those that it hit could go on. None: not at all, or, if it hit all, not on record."""
    if fault.resumed_ns is not None:
        return fault.resumed_ns
    kind = KINDS[fault.kind]
    if kind.hits_all:
        return fault.healed_ns
    never = fault.kind in DEADLY or kind.returns
    return None if never else fault.after_ns  # a connection that is cut is over at once


def _until(fault: FaultRecord, last: int) -> int:
    """Where its shade ends: no later than is known."""
    end = fault.after_ns if KINDS[fault.kind].hits_all else last
    return _over(fault) or end


def _shade(fault: FaultRecord, left: float, right: float) -> str:
    return (
        f'<rect x="{left:.1f}" y="2" width="{max(right - left, 2):.1f}" height="{LANE - 2}" '
        f'class="fault"><title>fault {fault.number}: {fault.kind}</title></rect>'
    )


def _bar(case: Case, call: Call, left: float, right: float) -> str:
    executed = [other for other in case.calls.by_key[call.who.key] if other.executed]
    if call.refused:
        colour, what = REFUSED, "a zombie's call, refused"
    elif len(executed) == 1:
        colour, what = ONCE, "once"
    elif call is executed[-1]:
        colour, what = REPEATED, "repeated"
    else:
        colour, what = WASTED, "paid for nothing"
    title = f"{call.begin.kind} {call.who.key} fence {call.who.fence}: {what}"
    return (
        f'<rect x="{left:.1f}" y="8" width="{max(right - left, 1.5):.1f}" height="14" rx="2" '
        f'fill="{colour}"><title>{escape(title)}</title></rect>'
    )


LEGEND = (
    '<p class="legend">'
    + "".join(
        f'<span><i style="background:{colour}"></i>{what}</span>'
        for colour, what in (
            (ONCE, "called once"),
            (WASTED, "paid for nothing"),
            (REPEATED, "called again"),
            (REFUSED, "zombie's call, refused"),
            ("#fecaca", "the worker, or the server, is dead, paused or cut off"),
        )
    )
    + "</p>"
)
