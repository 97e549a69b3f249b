"""The crash points: what was broken where, how often, and how long the takeover took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from comparison.cells import middle
from comparison.evidence import Case
from comparison.measures.recovery import recoveries

POINTS = {"begin": "while the call was under way", "reply": "answer paid, not yet recorded"}


Arms = Mapping[str, Sequence[Case]]
"""The campaigns of each arm."""


def crash_points(arms: Arms) -> str:
    """A row for each fault and point, a column for each arm; cells say n and median takeover."""
    head = "".join(f"<th>{escape(arm)}</th>" for arm in arms)
    everything = [case for cases in arms.values() for case in cases]
    kinds = dict.fromkeys(fault.kind for case in everything for fault in case.evidence.faults)
    lines = []
    for kind in kinds:
        for point, words in POINTS.items():
            row = [_cell(cases, kind, point) for cases in arms.values()]
            if any(row):
                filled = "".join(f"<td>{cell or '–'}</td>" for cell in row)
                lines.append(f"<tr><th>{escape(kind)}, {words}</th>{filled}</tr>")
    return (
        f'<div class="wide"><table><thead><tr><th></th>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _cell(cases: Sequence[Case], kind: str, point: str) -> str:
    planned, landed = 0, 0
    waits: list[float | None] = []
    for case in cases:
        faults = [f for f in case.evidence.faults if (f.kind, f.point) == (kind, point)]
        hits = {fault.number for fault in faults if fault.landed}
        planned, landed = planned + len(faults), landed + len(hits)
        waits += [r.takeover for r in recoveries(case) if r.fault in hits]
    if not planned:
        return ""
    times = sorted(seconds for seconds in waits if seconds is not None)
    said = f"n = {landed}"
    if landed < planned:
        said += f", {planned - landed} did not land"
    if times:
        said += f"; {middle(times):.2f} s over {len(times)} runs"
    if len(times) < len(waits):
        said += f"; {len(waits) - len(times)} not taken over"
    return said
