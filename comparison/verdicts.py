"""Three verdicts: pass, FAIL, unknown. Missing evidence is never success."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from comparison.evidence import Case


class Outcome(StrEnum):
    """What a check says. The worst of several decides."""

    PASS = "pass"
    UNKNOWN = "unknown"
    FAIL = "FAIL"


EXIT_CODES = {Outcome.PASS: 0, Outcome.FAIL: 1, Outcome.UNKNOWN: 2}


@dataclass
class Findings:
    """What a judge saw while it went through the evidence.

    `times` is how often the rule was evaluated; `tested` on how many of these it could really
    have failed (a step that two owners contested, say); `doubts` are reasons not to decide.
    """

    times: int = 0
    tested: int = 0
    violations: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)

    def evaluate(self, violation: str | None, *, tested: bool = True) -> None:
        """One evaluation of the rule: None, or what convicts."""
        self.times += 1
        self.tested += tested
        if violation is not None:
            self.violations.append(violation)


@dataclass(frozen=True)
class Verdict:
    """What one check found in one arm."""

    invariant: str
    rule: str
    outcome: Outcome
    times: int
    tested: int
    detail: str
    violations: tuple[str, ...] = ()


@dataclass(frozen=True)
class Check:
    """One invariant, the rule in words, what its `tested` counts, and who judges it."""

    invariant: str
    rule: str
    counts: str
    judge: Callable[[Case], Findings]

    def __call__(self, case: Case) -> Verdict:
        """Judge a case. Never passes without having been put to the test at least once."""
        found = self.judge(case)
        if found.violations:
            outcome, detail = Outcome.FAIL, found.violations[0]
        elif found.doubts:
            outcome, detail = Outcome.UNKNOWN, found.doubts[0]
        elif found.tested == 0:
            outcome, detail = Outcome.UNKNOWN, f"never put to the test: no {self.counts}"
        else:
            outcome, detail = Outcome.PASS, f"{found.tested} {self.counts}"
        return Verdict(
            self.invariant,
            self.rule,
            outcome,
            found.times,
            found.tested,
            detail,
            tuple(found.violations),
        )


def pool(campaigns: Sequence[Sequence[Verdict]]) -> tuple[Verdict, ...]:
    """One verdict for each check over several campaigns: the worst of them, with all violations.

    A check that was not put to the test in one campaign, but passed in another, has passed.
    """
    return tuple(_together(same) for same in zip(*campaigns, strict=True))


def _together(same: Sequence[Verdict]) -> Verdict:
    untested = [v for v in same if v.outcome is Outcome.UNKNOWN and v.tested == 0]
    deciding = [v for v in same if v not in untested] or list(same)
    outcome = worst(v.outcome for v in deciding)
    spokesman = next(v for v in deciding if v.outcome is outcome)
    tested = sum(v.tested for v in same)
    detail = spokesman.detail
    if outcome is Outcome.PASS:
        detail = f"{tested} {spokesman.detail.partition(' ')[2]}"
    return replace(
        spokesman,
        times=sum(v.times for v in same),
        tested=tested,
        detail=detail,
        violations=tuple(violation for v in same for violation in v.violations),
    )


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """FAIL before unknown before pass; unknown when there is nothing."""
    found = set(outcomes)
    for outcome in (Outcome.FAIL, Outcome.UNKNOWN, Outcome.PASS):
        if outcome in found:
            return outcome
    return Outcome.UNKNOWN
