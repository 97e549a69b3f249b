"""Which arm promises what: the invariants that an arm does not promise, and why.

A check of something that nobody promised is neither passed nor failed. Its verdict says so, with
what was seen beside it. Everything that is not in this table is promised, and judged.
"""

from __future__ import annotations

from collections.abc import Mapping

from comparison.arms import find_arm

NOT_PROMISED: Mapping[str, Mapping[str, str]] = {
    "story": {
        "INV-TRUST": "its workers keep no deadline of their own",
        "INV-SIGNAL": "it has no signals",
        "INV-CAP": "it has no limits",
        "INV-BUDGET": "it has no budgets",
        "INV-FAIR": "its claim knows no tenants",
        "INV-BLAME": "it does not count the workers that a run has cost",
    },
    "hand_rolled": {},
    "temporal": {
        # The server ends an attempt at its timeout. The SDK's own timers follow five seconds later,
        # so as not to race with the server, and a task that was handed to a frozen worker is begun
        # when it wakes. The server refuses the results of both.
        "INV-TRUST": "its SDK's own timers stop an attempt seconds after the timeout, not before",
        # Fairness keys share out a task queue. Under limits, the gate stands before the queues.
        "INV-FAIR": "its gate grants first come, first served",
        # `max_losses` bounds the workers that one step was lost with, whoever killed them.
        "INV-BLAME": "it counts how often a step lost its worker, not whose fault that was",
    },
}
"""By engine: no arm's settings change one of these."""


def why_not_promised(arm: str, invariant: str) -> str | None:
    """Why an arm, by its name, does not promise the invariant; None when it does."""
    return NOT_PROMISED[find_arm(arm).engine].get(invariant)
