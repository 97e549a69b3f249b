"""The worst run of an arm, call by call: who worked on it, what was paid twice, where it broke."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from comparison.evidence import Case, FaultRecord
from comparison.kinds import DEADLY, KINDS
from comparison.ledger import Call
from comparison.measures.recovery import recoveries

WIDTH, LANE, LEFT = 720, 30, 150
ONCE, REPEATED, REFUSED, WASTED = "#64748b", "#c2410c", "#6d28d9", "#fdba74"


def worst_run(cases: Sequence[Case]) -> tuple[Case, str] | None:
    """The run that waited longest for its next owner; one that never got one comes first."""
    candidates = [
        (recovery.takeover is None, recovery.takeover or 0.0, number, recovery.run)
        for number, case in enumerate(cases)
        for recovery in recoveries(case)
    ]
    if not candidates:
        return None
    *_, number, run = max(candidates)
    return cases[number], run


def timeline(case: Case, run: str) -> str:
    """Lanes are workers, bars are calls, shades are faults on the worker of that lane."""
    calls = case.calls.by_run[run]
    workers = list(dict.fromkeys(call.who.worker for call in calls))
    first = calls[0].begin.t_ns
    last = max(call.end.t_ns if call.end else call.begin.t_ns for call in calls)
    scale = (WIDTH - LEFT - 10) / max(last - first, 1)
    height = LANE * len(workers) + 34

    def x(t_ns: int) -> float:
        return LEFT + (min(max(t_ns, first), last) - first) * scale

    parts = []
    for lane, worker in enumerate(workers):
        y = lane * LANE + 6
        parts.append(f'<text x="0" y="{y + 14}">{escape(_short(worker))}</text>')
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH}" y1="{y + 22}" y2="{y + 22}" class="grid"/>')
        for fault in case.evidence.faults:
            if fault.landed and fault.victim == worker and fault.after_ns < last:
                parts.append(_shade(fault, x(fault.before_ns), x(_until(fault, last)), y))
    for call in calls:
        y = workers.index(call.who.worker) * LANE + 8
        until = call.end.t_ns if call.end else last
        parts.append(_bar(case, call, x(call.begin.t_ns), x(until), y))
    seconds = (last - first) / 1e9
    parts.append(f'<text x="{LEFT}" y="{height - 6}">0 s</text>')
    parts.append(f'<text x="{WIDTH}" y="{height - 6}" text-anchor="end">{seconds:.1f} s</text>')
    label = f"calls of {run}"
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(label)}">'
        f"{''.join(parts)}</svg>"
    )


def _short(worker: str) -> str:
    """A worker id is host-pid-nonce; the host is the same for all."""
    return "worker " + "-".join(worker.split("-")[-2:])


def _until(fault: FaultRecord, last: int) -> int:
    """How long its victim was out of action: to the end if it died or did not come back, else as
    long as the fault was brought (a connection that is cut is over at once)."""
    if fault.resumed_ns is not None:
        return fault.resumed_ns
    return last if fault.kind in DEADLY or KINDS[fault.kind].returns else fault.after_ns


def _shade(fault: FaultRecord, left: float, right: float, y: float) -> str:
    return (
        f'<rect x="{left:.1f}" y="{y - 4}" width="{max(right - left, 2):.1f}" height="{LANE - 2}" '
        f'class="fault"><title>{fault.kind}</title></rect>'
    )


def _bar(case: Case, call: Call, left: float, right: float, y: float) -> str:
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
        f'<rect x="{left:.1f}" y="{y}" width="{max(right - left, 1.5):.1f}" height="14" rx="2" '
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
            ("#fecaca", "the worker is dead, paused or cut off"),
        )
    )
    + "</p>"
)
