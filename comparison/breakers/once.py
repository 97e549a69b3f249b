"""One fault on one arm, once: the smallest campaign, with a full one's evidence and checks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from comparison.arms import Arm
from comparison.evidence import Case
from comparison.kinds import KINDS, CrashPoint, FaultKind, PlannedFault
from comparison.plan import Plan
from comparison.stage import run_arm

QUESTION = "Why do checkouts fail?"
WORKERS, RUNS = 2, 6


def plan_of_one(kind: FaultKind, point: CrashPoint) -> Plan:
    """A fault-free twin, one fault under a light load, and a few runs more."""
    fault = PlannedFault(number=1, kind=kind, point=point, call="model", occurrence=1, phase=0.0)
    return Plan(
        seed=1,
        workers=WORKERS,
        questions=(QUESTION,),
        investigations=RUNS,
        open_runs=2 * WORKERS,
        faults=(fault,),
        pending_cancellations=0,
        running_cancellations=0,
    )


async def bring_once(
    arm: Arm,
    kind: FaultKind,
    directory: Path,
    *,
    point: CrashPoint | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Case:
    """Bring one fault to `arm` and return what that left behind, which is under `directory` too.

    `point` is the first of the kind's points if it is not given. Raises `BadInput` when nobody is
    left to go on.
    """
    plan = plan_of_one(kind, point or KINDS[kind].points[0])
    return await run_arm(arm, plan, directory, say, crowded=False)
