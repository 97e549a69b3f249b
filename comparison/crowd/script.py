"""Who is in the crowd, and under which limits it works.

| tenant  | runs | what they are for                                                      |
|---------|------|------------------------------------------------------------------------|
| red     | 8    | flood the queue before anybody else comes (INV-FAIR)                   |
| blue    | 2    | wait for words between their calls (INV-SIGNAL)                        |
| green   | 2    | the same                                                               |
| grey    | 3    | may have one run at work at a time (INV-CAP)                           |
| purse   | 2    | have money for four calls and want twenty (INV-BUDGET)                 |
| white   | 2    | long and innocent: beside every worker that dies (INV-BLAME)           |
| black   | 1    | kills each worker that takes it, once the crowd is at work (INV-BLAME) |

Fewer places than runs, and fewer model calls at a time than places: each limit is reached.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from comparison.arms import Arm
from comparison.crowd.agents import Act, Errand
from comparison.crowd.app import POOL
from investigation.model import worst_case
from investigation.settings import load_settings
from investigation.steps import AskModel
from two_workers import Limits

QUESTION = "why do checkouts fail?"
WORKERS, PLACES = 2, 2
"""Processes, and runs that each has at a time."""
LIMITS = Limits(pools={POOL: 1}, tenants={"grey": 1})
RAISED = Limits(pools={POOL: 2}, tenants={"grey": 1})
"""Limits change while runs run. Raised, not lowered: what was granted before stays granted, so only
after a raise does the limit in force at a call's begin bound the calls in flight."""

QUEUE = "crowd"
"""On Temporal the gate belongs to a task queue's name, so it is the crowd's alone."""

SHARED, DEATHS = 2, 3
"""Workers that a poisonous run may kill. hand_rolled: two make it a suspect, the third dies while
it runs alone. Temporal counts how often the step was lost. The defaults, 5 and 21, last too long
here."""
_SETTINGS: Mapping[str, Mapping[str, str]] = {
    "hand_rolled": {
        "HAND_ROLLED_CONCURRENCY": f"{PLACES}",
        "HAND_ROLLED_MAX_CRASHES": f"{DEATHS - SHARED}",
    },
    "temporal": {
        "TEMPORAL_VERSION_CONCURRENCY": f"{PLACES}",
        "TEMPORAL_VERSION_MAX_LOSSES": f"{DEATHS - 1}",
        "TEMPORAL_VERSION_TASK_QUEUE": QUEUE,
    },
}


def has_crowd(arm: Arm) -> bool:
    """False for an arm that promises nothing of what a crowd is for."""
    return arm.engine in _SETTINGS


def settings_of(arm: Arm) -> Mapping[str, str]:
    """What the crowd's workers are told beside the arm's own settings."""
    return _SETTINGS[arm.engine]


@dataclass(frozen=True, kw_only=True)
class Member:
    """One run of the crowd. `budget` in micro-dollars."""

    name: str
    tenant: str
    acts: tuple[Act, ...]
    budget: int | None = None

    @property
    def errand(self) -> Errand:
        """The payload of the run."""
        return Errand(question=QUESTION, acts=self.acts)

    @property
    def words(self) -> int:
        """How many words it waits for."""
        return self.acts.count("hear")


def members() -> tuple[Member, ...]:
    """Everybody but the poison, in the order in which they come: the flood first."""
    return (
        *_members("red", 8, ("ask",)),
        *_members("blue", 2, ("ask", "hear") * 3),
        *_members("green", 2, ("ask", "hear") * 3),
        *_members("grey", 3, ("ask",) * 2),
        *_members("purse", 2, ("ask",) * 20, budget=_budget(calls=4)),
        *_members("white", 2, ("ask",) * 8),
    )


POISON = Member(name="black-0", tenant="black", acts=("die",))


def _members(
    tenant: str, count: int, acts: tuple[Act, ...], budget: int | None = None
) -> tuple[Member, ...]:
    return tuple(
        Member(name=f"{tenant}-{number}", tenant=tenant, acts=acts, budget=budget)
        for number in range(count)
    )


def _budget(*, calls: int) -> int:
    """Enough for `calls` calls of the scripted model, and not for one more at its worst."""
    settings = load_settings()
    worst = worst_case(settings, AskModel(question=QUESTION, turns=()))
    spent = settings.price(1_068, 45)  # what one call comes to, by the scripted model's own count
    return worst + (calls - 1) * spent + spent // 2
