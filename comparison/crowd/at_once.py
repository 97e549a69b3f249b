"""INV-CAP: how much went on at once, by the ledger, against the limits that were in force.

Whoever is no longer the owner does not count. A paused worker cannot know that its work, and the
slot that came with it, have gone to somebody else; no limit can stop the call it is in. So a
zombie's calls stand beside the limit, and are said apart. A dead worker's last call counts: its
slot is not free before it is known to be dead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from comparison.crowd.app import POOL
from comparison.crowd.notes import Notes
from comparison.evidence import CLOCKS_NS, Case
from comparison.ledger import Call
from comparison.trust_check import has_another_owner
from comparison.verdicts import Findings
from two_workers import Limits


@dataclass(frozen=True)
class Resource:
    """What a limit counts: which calls belong to it, and what of them is counted once."""

    name: str
    has: Callable[[Call], bool]
    counts: Callable[[Call], str]
    limit: Callable[[Limits], int | None]


def inv_cap(case: Case, crowd: Notes) -> Findings:
    """At each begin of a call, no more is at work than the limit; at rest, nothing is taken."""
    found = Findings()
    zombies: set[int] = set()
    for resource in _resources(crowd):
        calls = [call for call in case.calls.ledger.calls.values() if resource.has(call)]
        for call in calls:
            now = call.begin.t_ns
            most = _in_force(crowd, resource, now)
            if not call.executed or most is None or has_another_owner(case, call, now):
                continue
            flying = [c for c in calls if c.executed and c.in_flight_at(now)]
            gone = [c for c in flying if has_another_owner(case, c, now + CLOCKS_NS)]
            zombies |= {c.begin.call for c in gone}
            together = {resource.counts(c) for c in flying if c not in gone}
            problem = f"{call.who.key}: {len(together)} of {resource.name} at once, {most} allowed"
            found.evaluate(problem if len(together) > most else None, tested=len(together) >= most)
    for count in crowd.rest.counts:
        leak = f"at rest {count.resource} counts {count.counted}, and {count.held} are held"
        found.evaluate(leak if count.leaks else None, tested=False)
    if zombies:
        found.remark = f"{len(zombies)} calls of zombies beside them"
    return found


def _resources(crowd: Notes) -> Iterator[Resource]:
    yield Resource(
        name="the pool's calls",
        has=lambda call: call.begin.kind == "model",
        counts=lambda call: call.who.key,
        limit=lambda limits: limits.pools.get(POOL),
    )
    for tenant in {name for given in crowd.limits for name in given.limits.tenants}:
        runs = {errand.run for errand in crowd.errands if errand.tenant == tenant}
        yield Resource(
            name=f"{tenant}'s runs",
            has=lambda call, runs=runs: call.who.run in runs,  # type: ignore[misc] # mypy cannot infer a lambda with a default
            counts=lambda call: call.who.run,
            limit=lambda limits, tenant=tenant: limits.tenants.get(tenant),  # type: ignore[misc] # as above
        )


def _in_force(crowd: Notes, resource: Resource, t_ns: int) -> int | None:
    """The limit at a time. While it is being raised, the higher one may hold already."""
    asked = [resource.limit(given.limits) for given in crowd.limits if given.asked_ns <= t_ns]
    return asked[-1] if asked else None
