"""The crash points: what was broken where, how often, and how long the takeover took."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from comparison.cells import middle
from comparison.evidence import Case
from comparison.measures import Measures

POINTS = {"begin": "while the call was under way", "reply": "answer paid, not yet recorded"}


def crash_points(cases: Sequence[Case], measures: Sequence[Measures]) -> str:
    """A row for each fault and point, a column for each arm; cells say n and median takeover."""
    head = "".join(f"<th>{escape(case.evidence.arm)}</th>" for case in cases)
    kinds = dict.fromkeys(fault.kind for case in cases for fault in case.evidence.faults)
    lines = []
    for kind in kinds:
        for point, words in POINTS.items():
            row = [_cell(c, m, kind, point) for c, m in zip(cases, measures, strict=True)]
            if any(row):
                filled = "".join(f"<td>{cell or '–'}</td>" for cell in row)
                lines.append(f"<tr><th>{escape(kind)}, {words}</th>{filled}</tr>")
    return (
        f'<div class="wide"><table><thead><tr><th></th>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _cell(case: Case, measures: Measures, kind: str, point: str) -> str:
    faults = [f for f in case.evidence.faults if (f.kind, f.point) == (kind, point)]
    if not faults:
        return ""
    landed = [fault.number for fault in faults if fault.landed]
    mine = [r for r in measures.recoveries if r.fault in landed]
    times = sorted(r.takeover for r in mine if r.takeover is not None)
    said = f"n = {len(landed)}"
    if len(landed) < len(faults):
        said += f", {len(faults) - len(landed)} did not land"
    if times:
        said += f"; {middle(times):.2f} s over {len(times)} runs"
    if len(times) < len(mine):
        said += f"; {len(mine) - len(times)} not taken over"
    return said
