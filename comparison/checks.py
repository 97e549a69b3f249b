"""All checks, and judging a case with them."""

from __future__ import annotations

from comparison.evidence import Case
from comparison.owner_checks import OWNER_CHECKS
from comparison.run_checks import RUN_CHECKS
from comparison.verdicts import Verdict

CHECKS = (*OWNER_CHECKS, *RUN_CHECKS)


def judge(case: Case) -> list[Verdict]:
    """Every check's verdict on one arm."""
    return [check(case) for check in CHECKS]
