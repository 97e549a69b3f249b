"""`two-workers faults`: each fault once on each arm, and what became of the runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from comparison.arms import Arm
from comparison.breakers.catalogue import why_not_brought
from comparison.breakers.once import bring_once
from comparison.breakers.overload import Overload
from comparison.checks import judge
from comparison.evidence import Case
from comparison.faults import takeovers
from comparison.kinds import KINDS, FaultKind
from comparison.measures.duplicates import duplicates
from comparison.overloads import overloads
from comparison.verdicts import EXIT_CODES, Outcome, worst

BY_DEFAULT: tuple[FaultKind, ...] = tuple(
    kind for kind in KINDS if kind not in ("kill", "kill+cancel", "pause", "silence")
)
"""Those that a quick comparison has few of, or none."""


@dataclass(frozen=True)
class Row:
    """One fault on one arm, and what came of it in one line."""

    fault: str
    arm: str
    outcome: Outcome
    story: str


async def bring_all(
    arms: Sequence[Arm], kinds: Sequence[FaultKind], directory: Path, say: Callable[[str], None]
) -> int:
    """Bring every fault to every arm, one at a time. Returns the exit code.

    0 when every fault landed and no check objects, 1 when one does, 2 when a fault did not land
    or could not be brought. Evidence, ledgers and logs are under `directory`.
    """
    rows = []
    for kind in kinds:
        say(f"{kind}: {KINDS[kind].what}")
        for arm in arms:
            if KINDS[kind].postgres and arm.engine == "temporal":
                say(f"    {arm.name:<18} {why_not_brought(kind, arm)}")
                continue
            row = await _bring(kind, arm, directory / arm.name / kind)
            say(f"  {_SIGN[row.outcome]} {arm.name:<18} {row.story}")
            rows.append(row)
    return EXIT_CODES[worst(row.outcome for row in rows)]


async def load_all(arms: Sequence[Arm], directory: Path, say: Callable[[str], None]) -> int:
    """Load every arm at twice its capacity, without limits and with. Returns the exit code.

    1 when a limit in force was exceeded; an arm that has no limits is loaded without only.
    """
    code = 0
    for arm in arms:
        say(f"overload of {arm.name}")
        place = directory / arm.name / "overload"
        async for _, seen in overloads(arm, place, lambda text: say(f"  {text}")):
            say(f"  {_loaded(seen)}")
            code = max(code, int(seen.exceeded))
    return code


def _loaded(seen: Overload) -> str:
    return (
        f"{'✗' if seen.exceeded else '✓'} {seen.arrivals} arrivals: at most "
        f"{seen.most_runs_at_work} runs and {seen.most_model_calls_at_once} model calls at once; "
        f"queue age {seen.age_first_quarter:.1f} s, at the end {seen.age_last_quarter:.1f} s; "
        f"${seen.micro_usd / 1e6:.4f}, ${seen.micro_usd_per_second / 1e6:.4f} a second"
    )


_SIGN = {Outcome.PASS: "✓", Outcome.FAIL: "✗", Outcome.UNKNOWN: "?"}


async def _bring(kind: FaultKind, arm: Arm, directory: Path) -> Row:
    reason = why_not_brought(kind, arm)
    if reason is not None:
        return Row(kind, arm.name, Outcome.UNKNOWN, f"skipped: {reason}")
    return Row(kind, arm.name, *_told(await bring_once(arm, kind, directory)))


def _told(case: Case) -> tuple[Outcome, str]:
    """The verdict on a case, and the case in one line."""
    fault = case.evidence.faults[-1]
    if not fault.landed:
        return Outcome.UNKNOWN, f"did not land: {fault.problem}"
    objections = [v for v in judge(case) if v.outcome is Outcome.FAIL]
    if objections:
        return Outcome.FAIL, "; ".join(f"{v.invariant}: {v.detail}" for v in objections)
    ended = sum(end.state.is_final for end in case.evidence.ends)
    paid = duplicates(case)
    again = paid.calls - paid.distinct
    taken = takeovers(case.calls.ledger.calls.values(), fault).values()
    parts = [f"{ended} of {len(case.evidence.starts)} runs ended", f"{again} calls paid again"]
    if taken:
        parts.append(f"taken over after {(min(taken) - fault.after_ns) / 1e9:.1f} s")
    if case.evidence.refused_writes:
        parts.append(f"{len(case.evidence.refused_writes)} late writes refused")
    return Outcome.PASS, ", ".join(parts)
