"""The invariants of a run as its client sees it: started, ended, the same, cancelled."""

from __future__ import annotations

from comparison.evidence import Cancellation, Case, End, Start
from comparison.ledger import Call, batch_of
from comparison.verdicts import Check, Findings
from two_workers import RunState

ON_ITS_WAY_NS = 250_000_000
"""After a cancellation is acknowledged, a call that was already on its way may still arrive."""


def inv_start(case: Case) -> Findings:
    """Every acknowledged start can be found at the end."""
    found = Findings()
    known = {end.run for end in case.evidence.ends}
    for start in case.evidence.starts:
        lost = start.run not in known
        found.evaluate(f"{start.run} was acknowledged, then unknown" if lost else None)
    return found


def inv_end(case: Case) -> Findings:
    """A run that ended is found in the same state with the same result when asked again."""
    found = Findings()
    for end in case.evidence.ends:
        if not end.state.is_final:
            continue  # INV-LIVE's business
        violation = None
        if end.state_again != end.state:
            violation = f"{end.run} ended {end.state}, later it was {end.state_again}"
        elif end.result_again != end.result:
            violation = f"{end.run}: its result changed after its end"
        reports = {
            call.begin.input_hash
            for call in case.calls.by_run.get(end.run, [])
            if call.begin.kind == "report" and call.executed
        }
        if len(reports) > 1:
            violation = f"{end.run} handed in {len(reports)} different reports"
        found.evaluate(violation)
    return found


def inv_live(case: Case) -> Findings:
    """After the last heal every run ends within the bound, those of the crowd beside it too."""
    found = Findings()
    for evidence in [part.evidence for part in (case, case.crowd) if part is not None]:
        under_faults = any(fault.landed for fault in evidence.faults)
        in_time = evidence.converged_ns is not None
        states = {end.run: end.state for end in evidence.ends}
        for start in evidence.starts:
            state = states.get(start.run)
            ended = state is not None and state.is_final
            late = f"{start.run} was {state} {evidence.convergence_bound:g} s after the last heal"
            found.evaluate(None if ended and in_time else late, tested=under_faults)
    return found


def inv_same(case: Case) -> Findings:
    """Runs that ended normally give the twin's report by the twin's steps; others a prefix."""
    found = Findings()
    ends = {end.run: end for end in case.evidence.ends}
    twins = {s.question: ends[s.run] for s in case.evidence.starts if s.twin and s.run in ends}
    hit = {run for fault in case.evidence.faults if fault.landed for run in fault.owned}
    for start in case.evidence.starts:
        end = ends.get(start.run)
        if start.twin or end is None:
            continue
        twin = twins.get(start.question)
        if twin is None or twin.state is not RunState.SUCCEEDED:
            found.doubts.append(f"question {start.question}: its fault-free twin did not succeed")
            continue
        found.evaluate(_difference(start, end, twin), tested=start.run in hit)
    return found


def _difference(start: Start, end: End, twin: End) -> str | None:
    mine, reference = _steps(end), _steps(twin)
    if end.state is RunState.SUCCEEDED:
        if end.result != twin.result:
            return f"{start.run}: its report differs from the fault-free one"
        if mine != reference:
            return f"{start.run}: its steps differ from the fault-free ones"
    elif end.state is RunState.FAILED:
        return f"{start.run} failed, its fault-free twin did not: {end.failure}"
    elif not mine.items() <= reference.items():
        return f"{start.run}: its recorded steps are no part of the fault-free ones"
    return None


def _steps(end: End) -> dict[str, str]:
    """The recorded steps: place in the run → kind."""
    return {step.key.rpartition("/")[2]: step.kind for step in end.steps}


def inv_key(case: Case) -> Findings:
    """The same step always carries the same input, whoever calls."""
    found = Findings()
    for key, calls in case.calls.by_key.items():
        inputs = {call.begin.input_hash for call in calls}
        problem = f"{key} was called with {len(inputs)} different inputs"
        found.evaluate(problem if len(inputs) > 1 else None, tested=len(calls) > 1)
    return found


def inv_cancel(case: Case) -> Findings:
    """After the acknowledgement nobody starts or resumes the run, and it ends cancelled."""
    found = Findings()
    for cancellation in case.evidence.cancellations:
        if cancellation.state_before.is_final:
            found.evaluate(None, tested=False)  # it had ended before it was asked to
        else:
            found.evaluate(_cancel_problem(case, cancellation))
    return found


def _cancel_problem(case: Case, cancellation: Cancellation) -> str | None:
    run = cancellation.run
    if cancellation.state_after is not RunState.CANCELLED:
        return f"{run} was cancelled ({cancellation.case}) but is {cancellation.state_after}"
    calls = [call for call in case.calls.by_run.get(run, []) if call.executed]
    before = [c for c in calls if c.begin.t_ns <= cancellation.acknowledged_ns]
    for call in calls:
        begun = call.begin.t_ns
        late = begun > cancellation.acknowledged_ns + ON_ITS_WAY_NS
        if late and _resumes(call, before):
            return f"{call.who.worker} resumed {run} after its cancellation was acknowledged"
        if cancellation.ended_ns is not None and begun > cancellation.ended_ns:
            return f"{call.who.key} was called after {run} had ended cancelled"
    return None


def _resumes(call: Call, before: list[Call]) -> bool:
    """True for a call by a worker new to the run that repeats a step or goes on to a later batch.

    A further step of the batch under way is neither: on Temporal its siblings may be with several
    workers, and those that were scheduled already may still be handed out.
    """
    if call.who.worker in {other.who.worker for other in before}:
        return False
    repeats = any(other.who.key == call.who.key for other in before)
    return repeats or batch_of(call.who.key) > max(
        (batch_of(other.who.key) for other in before), default=-1
    )


def ledger_agrees(case: Case) -> Findings:
    """What the engine says was done is what the ledger saw, and the other way round.

    A recorded success has an answered call by the worker that the engine names; a run that
    succeeded has made no call that is missing from its record.
    """
    found = Findings()
    for end in case.evidence.ends:
        calls = case.calls.by_run.get(end.run, [])
        answered = {
            (call.who.key, call.who.worker)
            for call in calls
            if call.end is not None and call.end.outcome == "answered"
        }
        for step in end.steps:
            if step.outcome == "succeeded" and step.worker is not None:
                unseen = (step.key, step.worker) not in answered
                problem = f"{step.key}: recorded for {step.worker}, of whom the ledger saw no call"
                found.evaluate(problem if unseen else None)
        if end.state is RunState.SUCCEEDED:
            recorded = {step.key for step in end.steps}
            missing = sorted({call.who.key for call in calls} - recorded)
            found.evaluate(f"{missing[0]} was called and never recorded" if missing else None)
    return found


RUN_CHECKS = (
    Check("INV-START", "every acknowledged start exists", "acknowledged starts", inv_start),
    Check("INV-END", "every end is final, and its result never changes", "ended runs", inv_end),
    Check("INV-LIVE", "after the last heal every run ends in time", "runs under faults", inv_live),
    Check("INV-SAME", "report and steps equal the fault-free twin's", "faulted runs", inv_same),
    Check("INV-KEY", "a step repeats with the same input", "repeated steps", inv_key),
    Check("INV-CANCEL", "after the acknowledgement nobody resumes", "cancellations", inv_cancel),
    Check("LEDGER", "the engine's record and the ledger agree", "records", ledger_agrees),
)
