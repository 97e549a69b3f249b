"""The invariants of a crowd: signals, budgets, fairness and blame. `at_once` has the limits.

Each looks at the case of the crowd beside a campaign. Without one there is nothing to look at, and
nothing passes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from comparison.crowd.at_once import inv_cap
from comparison.crowd.notes import Errand, Notes, Sent
from comparison.evidence import Case, End
from comparison.verdicts import Check, Findings
from two_workers import RunState

POISON = ("Poison", "WorkerLost")
"""How the engines say that a run has cost too many workers."""


@dataclass(frozen=True)
class Seen:
    """A crowd's case, with what the checks ask it for."""

    case: Case
    crowd: Notes

    @property
    def ends(self) -> dict[str, End]:
        return {end.run: end for end in self.case.evidence.ends}

    def wanted(self, run: str) -> int:
        """How many words a run waits for."""
        return next(e.acts.count("hear") for e in self.crowd.errands if e.run == run)

    @property
    def served(self) -> list[tuple[int, str]]:
        """When which run was given to a worker out of the queue: by the record of claims where runs
        are claimed (as often as a run came back to the queue), else by each run's first call."""
        runs = {errand.run for errand in self.crowd.errands}
        claims = [
            (owned.since_ns, owned.what)
            for owned in self.case.evidence.ownerships
            if owned.what in runs and owned.cause == "claimed"
        ]
        calls = self.case.calls.by_run
        return sorted(claims or [(calls[run][0].begin.t_ns, run) for run in calls])


def of_the_crowd(judge: Callable[[Seen], Findings]) -> Callable[[Case], Findings]:
    """A judge of the crowd's case as a judge of the campaign's. No crowd: nothing found."""

    def judged(case: Case) -> Findings:
        beside = case.crowd
        if beside is None or beside.evidence.crowd is None:
            return Findings()
        return judge(Seen(beside, beside.evidence.crowd))

    return judged


def inv_signal(seen: Seen) -> Findings:
    """Each run heard the words that were sent to it: every one, once, in the order of sending.

    The rule is really tested by words that were sent more than once, that came in the instant in
    which their run parked, or that were for a run which changed hands.
    """
    found = Findings()
    for run, words in _words(seen).items():
        numbers = sorted(words)
        end = seen.ends.get(run)
        if end is not None and not end.state.is_final and len(words) < seen.wanted(run):
            found.doubts.append(f"{run} waits for words that were never sent")
            continue
        if end is not None and end.state is not RunState.SUCCEEDED:
            found.evaluate(f"{run} is {end.state}, though {len(numbers)} words were sent to it")
            continue
        heard = end.result if end is not None and isinstance(end.result, list) else []
        orphaned = len({call.who.worker for call in seen.case.calls.by_run.get(run, [])}) > 1
        for place, number in enumerate(numbers):
            wrong = heard[place : place + 1] != [number] or len(heard) > len(numbers)
            sent = words[number]
            hard = sum(s.times for s in sent) > 1 or any(s.moment == "parking" for s in sent)
            found.evaluate(
                f"{run} was sent the words {numbers}, and heard {heard}" if wrong else None,
                tested=hard or orphaned,
            )
    return found


def _words(seen: Seen) -> dict[str, dict[int, list[Sent]]]:
    """What was sent and acknowledged: run → number of the word → its sendings."""
    words: dict[str, dict[int, list[Sent]]] = {}
    for sent in seen.crowd.sent:
        if sent.acknowledged_ns is not None:
            words.setdefault(sent.run, {}).setdefault(sent.number, []).append(sent)
    return words


def inv_budget(seen: Seen) -> Findings:
    """No run cost more than its budget, and what was put aside came back.

    Two accounts. The engine's own must stay within the budget. The ledger's may pass it by calls
    that a fault cut off: paid, repeated by somebody else, and never settled. So there each step is
    counted once. Tested by the runs that wanted more than they had, and had to be stopped.
    """
    found = Findings()
    for errand in seen.crowd.errands:
        if errand.budget is not None:
            end = seen.ends.get(errand.run)
            stopped = end is not None and "BudgetExceeded" in (end.failure or "")
            found.evaluate(_overspent(seen, errand, stopped), tested=stopped)
    if seen.crowd.rest.reserved is not None:
        left = f"{seen.crowd.rest.reserved} micro-dollars were still put aside at rest"
        found.evaluate(left if seen.crowd.rest.reserved else None, tested=False)
    return found


def _overspent(seen: Seen, errand: Errand, stopped: bool) -> str | None:
    assert errand.budget is not None
    paid: dict[str, int] = {}
    for call in seen.case.calls.by_run.get(errand.run, []):
        if call.end is not None and call.executed:
            paid[call.who.key] = max(call.end.micro_usd, paid.get(call.who.key, 0))
    needed = sum(paid.values())
    if errand.cost > errand.budget:
        return f"{errand.run} cost {errand.cost}, and its budget was {errand.budget}"
    if needed > errand.budget:
        return f"{errand.run}: steps for {needed} were paid, and its budget was {errand.budget}"
    if not stopped and len(paid) < len(errand.acts):
        return f"{errand.run} was neither finished nor stopped for its budget"
    return None


def inv_fair(seen: Seen) -> Findings:
    """While a run waits to be taken first, no other tenant is served more often than the fleet has
    places, counted from the last time that the run's own tenant was.

    Each place may be handed out once while a tenant's turn is on its way: claims run at the same
    time, and step over tenants that another claim has in hand. Tested when some other tenant had
    more runs than that waiting, so that it could have been served more often.
    """
    found = Findings()
    served = seen.served
    started = {start.run: start.t_ns for start in seen.case.evidence.starts}
    tenant_of = {errand.run: errand.tenant for errand in seen.crowd.errands}
    limited = {tenant for given in seen.crowd.limits for tenant in given.limits.tenants}
    first = {run: t_ns for t_ns, run in reversed(served)}
    for run, taken in first.items():
        mine = tenant_of[run]
        if mine in limited or run == seen.crowd.poison:
            continue
        ours = [t for t, other in served if tenant_of[other] == mine and t < taken]
        since = max([started[run], *ours])
        passed = Counter(tenant_of[other] for t, other in served if since < t < taken)
        queued = Counter(
            tenant_of[other] for other in first if started[other] <= since < first[other]
        )
        most = max((n for tenant, n in passed.items() if tenant != mine), default=0)
        flood = max((n for tenant, n in queued.items() if tenant != mine), default=0)
        problem = f"{run} waited while another tenant was served {most} times"
        found.evaluate(
            problem if most > seen.crowd.places else None, tested=flood > seen.crowd.places
        )
    return found


def inv_blame(seen: Seen) -> Findings:
    """The run that kills its workers is failed; runs that only shared a worker with it are not.

    Tested by the innocent runs that were in a call on a worker as it died.
    """
    found = Findings()
    beside = set(_neighbours(seen))
    for run, end in seen.ends.items():
        blamed = end.failure is not None and any(word in end.failure for word in POISON)
        if run == seen.crowd.poison:
            killed = len({call.who.worker for call in seen.case.calls.by_run.get(run, [])})
            problem = f"{run} killed {killed} workers, and is {end.state}"
            ended = end.state is RunState.FAILED and blamed
            found.evaluate(None if ended else problem, tested=False)
        else:
            problem = f"{run} was failed for crashes that it did not cause: {end.failure}"
            found.evaluate(problem if blamed else None, tested=run in beside)
    return found


def _neighbours(seen: Seen) -> Iterator[str]:
    """Innocent runs in flight on a worker in the moment in which the poison killed it."""
    for death in seen.case.calls.by_run.get(seen.crowd.poison, []):
        moment = death.begin.t_ns if death.end is None else death.end.t_ns
        for call in seen.case.calls.ledger.in_flight(death.who.worker, moment):
            if call.who.run != seen.crowd.poison:
                yield call.who.run


CROWD_CHECKS = (
    Check(
        "INV-SIGNAL",
        "a signal is delivered once, in order",
        "signals sent twice, at the parking, or to a run that moved",
        of_the_crowd(inv_signal),
    ),
    Check(
        "INV-CAP",
        "no more at once than the limit in force",
        "begins at the limit",
        of_the_crowd(lambda seen: inv_cap(seen.case, seen.crowd)),
    ),
    Check(
        "INV-BUDGET",
        "no run costs more than its budget",
        "budgets that ran out",
        of_the_crowd(inv_budget),
    ),
    Check(
        "INV-FAIR",
        "no tenant is passed over again and again",
        "waits beside a flood",
        of_the_crowd(inv_fair),
    ),
    Check(
        "INV-BLAME",
        "only the run that kills its workers is failed for it",
        "innocent runs on a worker that died",
        of_the_crowd(inv_blame),
    ),
)
