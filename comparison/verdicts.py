"""Three verdicts: pass, FAIL, unknown. Missing evidence is never success.

Beside them stands `not promised`: the arm never said that it keeps the rule (`promises`). That is
no verdict on the arm and does not count in the whole; what was seen is said with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from comparison.evidence import Case


class Outcome(StrEnum):
    """What a check says. The worst of several decides."""

    PASS = "pass"
    UNKNOWN = "unknown"
    FAIL = "FAIL"
    NOT_PROMISED = "not promised"


EXIT_CODES: Mapping[Outcome, int] = {
    Outcome.PASS: 0,
    Outcome.FAIL: 1,
    Outcome.UNKNOWN: 2,
    Outcome.NOT_PROMISED: 2,  # nothing was promised, so nothing was shown
}


@dataclass
class Findings:
    """What a judge saw while it went through the evidence.

    `times` is how often the rule was evaluated; `tested` on how many of these it could really
    have failed (a step that two owners contested, say); `doubts` are reasons not to decide;
    `remark` is what a reader should know beside the count.
    """

    times: int = 0
    tested: int = 0
    violations: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    remark: str = ""

    def evaluate(self, violation: str | None, *, tested: bool = True) -> None:
        """One evaluation of the rule: None, or what convicts."""
        self.times += 1
        self.tested += tested
        if violation is not None:
            self.violations.append(violation)


@dataclass(frozen=True)
class Verdict:
    """What one check found in one arm. `counts` says what `tested` is a number of."""

    invariant: str
    rule: str
    outcome: Outcome
    times: int
    tested: int
    detail: str
    violations: tuple[str, ...] = ()
    counts: str = ""

    @property
    def summary(self) -> str:
        """The detail; where nothing was promised, that is said first."""
        if self.outcome is Outcome.NOT_PROMISED:
            return f"not promised, since {self.detail}"
        return self.detail


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
            remark = f"; {found.remark}" if found.remark else ""
            outcome, detail = Outcome.PASS, f"{found.tested} {self.counts}{remark}"
        return Verdict(
            self.invariant,
            self.rule,
            outcome,
            found.times,
            found.tested,
            detail,
            tuple(found.violations),
            self.counts,
        )


def not_promised(verdict: Verdict, why: str) -> Verdict:
    """What was found of a rule that the arm never said it keeps."""
    seen = f"seen: {verdict.tested} {verdict.counts}, {len(verdict.violations)} against the rule"
    detail = f"{why}; {seen}" if verdict.times else why
    return replace(verdict, outcome=Outcome.NOT_PROMISED, detail=detail)


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
    together = replace(
        spokesman,
        times=sum(v.times for v in same),
        tested=sum(v.tested for v in same),
        violations=tuple(violation for v in same for violation in v.violations),
    )
    match outcome:
        case Outcome.NOT_PROMISED:
            return not_promised(together, spokesman.detail.partition("; seen: ")[0])
        case Outcome.PASS if len(same) > 1:
            return replace(together, detail=f"{together.tested} {together.counts}")
        case _:
            return together


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """FAIL before unknown before pass; not promised when nothing was; unknown for nothing."""
    found = set(outcomes)
    for outcome in (Outcome.FAIL, Outcome.UNKNOWN, Outcome.PASS, Outcome.NOT_PROMISED):
        if outcome in found:
            return outcome
    return Outcome.UNKNOWN
