"""The crash-point grid: what was struck where, how often, what came of it, and how fast."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from statistics import median

from comparison.arms import find_arm
from comparison.evidence import Case, FaultRecord
from comparison.kinds import KINDS, POINTS, CrashPoint, FaultKind
from comparison.ledger import run_of
from comparison.measures.recovery import Recovery, recoveries
from comparison.owner_checks import ALLOWANCE
from two_workers import RunState

Arms = Mapping[str, Sequence[Case]]
"""The campaigns of each arm."""

LEGEND = (
    "A cell is one fault at one point: ✓ when every run that it hit ended with the report of its "
    "fault-free twin (or cancelled, if that was asked for) and was taken over in time where its "
    "worker had lost it, ✗ when one did not; how often it landed there, by the ledger and the "
    "proxies; and how long the run at that very point waited for somebody else (median)."
)


@dataclass(frozen=True)
class Struck:
    """One cell. `waits` in seconds, of the runs at the crash point that were taken over."""

    landed: int
    missed: int
    went_wrong: tuple[str, ...]
    waits: tuple[float, ...]
    never: int

    def __str__(self) -> str:
        if not self.landed:
            return f"? {self.missed} did not land"
        parts = [f"{'✗' if self.went_wrong else '✓'} n = {self.landed}"]
        if self.waits:
            parts.append(f"{median(self.waits):.2f} s")
        if self.never:
            parts.append(f"{self.never} not taken over")
        if self.missed:
            parts.append(f"{self.missed} did not land")
        return ", ".join([*parts, *self.went_wrong[:1]])


def crash_points(arms: Arms) -> str:
    """A row for each fault and point, a column for each arm."""
    head = "".join(f"<th>{escape(arm)}</th>" for arm in arms)
    found = {arm: struck(cases) for arm, cases in arms.items()}
    planned = [cell for cells in found.values() for cell in cells]
    lines = []
    for kind in KINDS:
        for point, words in POINTS.items():
            if (kind, point) not in planned:
                continue
            row = [cells.get((kind, point)) for cells in found.values()]
            filled = "".join(f"<td>{'–' if c is None else escape(str(c))}</td>" for c in row)
            lines.append(f"<tr><th>{escape(kind)}: {escape(words)}</th>{filled}</tr>")
    return (
        f'<div class="wide"><table><thead><tr><th></th>{head}</tr></thead>'
        f'<tbody>{"".join(lines)}</tbody></table></div><p class="small">{escape(LEGEND)}</p>'
    )


def struck(cases: Sequence[Case]) -> dict[tuple[FaultKind, CrashPoint], Struck]:
    """What was struck where in the campaigns of one arm."""
    found: dict[tuple[FaultKind, CrashPoint], list[_Try]] = {}
    for case in cases:
        waits = list(recoveries(case))
        for fault in case.evidence.faults:
            mine = [wait for wait in waits if fault.landed and wait.fault == fault.number]
            found.setdefault((fault.kind, fault.point), []).append(_Try(case, fault, mine))
    return {cell: _struck(tries) for cell, tries in found.items()}


@dataclass(frozen=True)
class _Try:
    """One fault as it was tried, and the runs that it orphaned."""

    case: Case
    fault: FaultRecord
    orphaned: Sequence[Recovery]


def _struck(tries: Sequence[_Try]) -> Struck:
    landed = [tried for tried in tries if tried.fault.landed]
    # The other runs of the victim were wherever they were.
    waits = [
        wait.takeover
        for tried in landed
        for wait in tried.orphaned
        if tried.fault.held_key is not None and wait.run == run_of(tried.fault.held_key)
    ]
    return Struck(
        landed=len(landed),
        missed=len(tries) - len(landed),
        went_wrong=tuple(problem for tried in landed for problem in _wrong(tried)),
        waits=tuple(wait for wait in waits if wait is not None),
        never=waits.count(None),
    )


def _wrong(tried: _Try) -> Iterator[str]:
    """What went wrong with the runs that a fault hit."""
    case = tried.case
    ends = {end.run: end for end in case.evidence.ends}
    question = {start.run: start.question for start in case.evidence.starts}
    twins = {s.question: ends[s.run] for s in case.evidence.starts if s.twin and s.run in ends}
    cancelled = {cancellation.run for cancellation in case.evidence.cancellations}
    for run in tried.fault.owned:
        end, twin = ends.get(run), twins.get(question.get(run, -1))
        if end is None or not end.state.is_final:
            yield f"{run} did not end"
        elif run in cancelled and end.state is RunState.CANCELLED:
            continue
        elif twin is not None and (end.state, end.result) != (twin.state, twin.result):
            yield f"{run} ended {end.state}, unlike its twin"
    bound = find_arm(case.evidence.arm).predict(tried.fault.kind)[1] + ALLOWANCE
    for wait in tried.orphaned:
        if (wait.takeover or 0.0) > bound:
            yield f"{wait.run} waited {wait.takeover:.1f} s"
