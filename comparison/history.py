"""What went on in every campaign, for readers and their tools: `history.jsonl`, `faults.jsonl`.

Both are derived, and nothing is judged by them. The world's ledger, the engine's own records and
the harness's notes come together in one order of time, which none of them has alone.

One JSON object a line. `t`, like every time here, is in seconds since the first event of its
campaign. `worker` and `fence` are those under which something was done; what has none is null.
The crowd beside a campaign is a campaign of its own, `<campaign>/crowd`. (The first scene has no
part here: its ledger, `scene/ledger.jsonl`, is all that there is of it.)

    what                    besides
    run started             question, twin: True for a run that no fault is brought to
    owner changed           owns: the run, or the step; cause, in the engine's words. `worker` is
                            null when it was taken from its owner and given to nobody
    call begun              call: its number; step, kind, name, attempt
    call answered, refused, failed
                            call, step, kind, delivered, tokens_in, tokens_out, micro_usd
    step recorded           step: the engine has accepted its outcome
    write refused           said: the line of the worker's log
    late record let through owns, as above; outcome: what the server said to what a silence withheld
    cancel requested, cancel acknowledged
    run ended               state, failure
    fault struck, fault over
                            number, as in faults.jsonl; kind
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from comparison.evidence import Case, FaultRecord
from comparison.ledger import Begin, Ledger, run_of
from comparison.plan import Plan
from two_workers import Fence

Line = dict[str, Any]


class Event(NamedTuple):
    """One line of the history, its time still in nanoseconds."""

    t_ns: int
    what: str
    run: str | None
    worker: str | None = None
    fence: Fence | None = None
    more: Mapping[str, Any] = {}


class Campaign(NamedTuple):
    """What one campaign left, under the name of its folder."""

    name: str
    plan: Plan
    case: Case


def by_arm(campaigns: Iterable[Campaign]) -> dict[str, list[Case]]:
    """The cases of each arm."""
    found: dict[str, list[Case]] = {}
    for campaign in campaigns:
        found.setdefault(campaign.case.evidence.arm, []).append(campaign.case)
    return found


def history(campaigns: Iterable[Campaign]) -> Iterator[str]:
    """`history.jsonl`, line by line: after hours of faults it is as large as all the ledgers."""
    return _lines(
        {
            "campaign": name,
            "arm": case.evidence.arm,
            "t": _seconds(event.t_ns, first),
            "what": event.what,
            "run": event.run,
            "worker": event.worker,
            "fence": event.fence,
            **event.more,
        }
        for name, case in _with_crowds(campaigns)
        for first, event in _in_order(case)
    )


def faults(campaigns: Iterable[Campaign]) -> Iterator[str]:
    """`faults.jsonl`, line by line. A fault that missed was tried again, as a line of its own.

    `aimed` is when its crash point was first waited for, `struck` and `done` when it was brought,
    `confirmed` when it was known to have met its victim, `back` when the victim could go on, and
    `healed` when nothing of it was left: the network whole, and another worker for a dead one.
    `hit` are the steps whose calls were in flight, `just_done` the one that had been recorded.
    """
    return _lines(
        {"campaign": name, "arm": case.evidence.arm, **fault}
        for name, plan, case in campaigns
        for fault in _faults(case, plan)
    )


def _with_crowds(campaigns: Iterable[Campaign]) -> Iterator[tuple[str, Case]]:
    for name, _, case in campaigns:
        yield name, case
        if case.crowd is not None:
            yield f"{name}/crowd", case.crowd


def _in_order(case: Case) -> Iterator[tuple[int, Event]]:
    """Every event, with the time of the first one."""
    events = sorted(_events(case), key=lambda event: event.t_ns)
    return ((events[0].t_ns, event) for event in events)


def _events(case: Case) -> Iterator[Event]:
    evidence = case.evidence
    for start in evidence.starts:
        about = {"question": start.question, "twin": start.twin}
        yield Event(start.t_ns, "run started", start.run, more=about)
    for own in evidence.ownerships:
        # What is owned is a run, or a step whose key begins with its run.
        run = run_of(own.what) or own.what
        more = {"owns": own.what, "cause": own.cause}
        yield Event(own.since_ns, "owner changed", run, own.worker, own.fence, more)
    yield from _calls(case.calls.ledger)
    for write in evidence.writes:
        run, more = run_of(write.key), {"step": write.key}
        yield Event(write.t_ns, "step recorded", run, write.worker, write.fence, more)
    for refused in evidence.refused_writes:
        yield Event(
            refused.t_ns, "write refused", None, refused.worker, more={"said": refused.line}
        )
    for late in evidence.late_records or ():
        run, told = run_of(late.what) or late.what, {"owns": late.what, "outcome": late.outcome}
        yield Event(late.passed_ns, "late record let through", run, late.worker, more=told)
    for cancel in evidence.cancellations:
        yield Event(cancel.requested_ns, "cancel requested", cancel.run)
        yield Event(cancel.acknowledged_ns, "cancel acknowledged", cancel.run)
    for end in evidence.ends:
        if end.state.is_final:
            came_to = {"state": end.state, "failure": end.failure}
            yield Event(end.t_ns, "run ended", end.run, more=came_to)
    for fault in evidence.faults:
        yield from _struck(fault)


def _calls(ledger: Ledger) -> Iterator[Event]:
    for record in ledger.records:
        begin = record if isinstance(record, Begin) else ledger.calls[record.call].begin
        who = begin.identity
        more: Line = {"call": record.call, "step": who.key, "kind": begin.kind}
        if isinstance(record, Begin):
            what = "call begun"
            more |= {"name": begin.name, "attempt": who.attempt}
        else:
            what = f"call {record.outcome}"
            more |= {
                name: getattr(record, name)
                for name in ("delivered", "tokens_in", "tokens_out", "micro_usd")
            }
        yield Event(record.t_ns, what, who.run, who.worker, who.fence, more)


def _struck(fault: FaultRecord) -> Iterator[Event]:
    """Nothing of a fault that never came to be brought."""
    about = {"number": fault.number, "kind": fault.kind}
    victim = fault.victim or None
    if fault.before_ns:
        yield Event(fault.before_ns, "fault struck", None, victim, more=about)
    if fault.resumed_ns is not None:
        yield Event(fault.resumed_ns, "fault over", None, victim, more=about)


def _faults(case: Case, plan: Plan) -> Iterator[Line]:
    first = min(event.t_ns for event in _events(case))
    planned = {fault.number: fault for fault in plan.faults}
    for fault in case.evidence.faults:
        aim = planned.get(fault.number)
        yield {
            "number": fault.number,
            "kind": fault.kind,
            "point": fault.point,
            "planned": aim and {"call": aim.call, "occurrence": aim.occurrence, "phase": aim.phase},
            "victim": fault.victim or None,
            "aimed": _seconds(fault.aimed_ns, first),
            "struck": _seconds(fault.before_ns or None, first),
            "done": _seconds(fault.after_ns or None, first),
            "confirmed": _seconds(fault.confirmed_ns, first),
            "back": _seconds(fault.resumed_ns, first),
            "healed": _seconds(fault.healed_ns, first),
            "hit": fault.in_flight,
            "just_done": fault.answered,
            "withheld_bytes": fault.late_bytes,
            "landed": fault.landed,
            "problem": fault.problem,
        }


def _seconds(t_ns: int | None, first: int) -> float | None:
    return None if t_ns is None else round((t_ns - first) / 1e9, 6)


def _lines(objects: Iterable[Line]) -> Iterator[str]:
    return (json.dumps(fields, separators=(",", ":")) + "\n" for fields in objects)
