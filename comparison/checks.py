"""All checks, and judging a case with them."""

from __future__ import annotations

from comparison.crowd.checks import CROWD_CHECKS
from comparison.evidence import Case
from comparison.owner_checks import OWNER_CHECKS
from comparison.promises import why_not_promised
from comparison.run_checks import RUN_CHECKS
from comparison.trust_check import TRUST_CHECK
from comparison.verdicts import Verdict, not_promised

CHECKS = (*OWNER_CHECKS, TRUST_CHECK, *RUN_CHECKS, *CROWD_CHECKS)


def judge(case: Case) -> list[Verdict]:
    """Every check's verdict on one arm."""
    return [_as_promised(case.evidence.arm, check(case)) for check in CHECKS]


def _as_promised(arm: str, verdict: Verdict) -> Verdict:
    why = why_not_promised(arm, verdict.invariant)
    return verdict if why is None else not_promised(verdict, why)
