"""The questions. Each names the run that answers it and how to read the answer off that run.

`run` is a scenario of the mapping, or `broken-<guard>`: the same over a store without that guard.
The choices are what somebody might believe; which of them is right is not known here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from comparison.mapping.recording import Recording, Side

Read = Callable[[Side], object]


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question. `engine` is the side of the recording that answers it."""

    name: str
    run: str
    asks: str
    choices: tuple[str, ...]
    read: Read
    concept: str
    engine: str = "hand_rolled"

    def answer(self, recording: Recording) -> str:
        """What the run showed. Raises `LookupError` if it does not say."""
        side = recording.side(self.engine)
        if side is None:
            raise LookupError(f"{self.name}: the run has no side {self.engine!r}")
        return str(self.read(side))


def _fact(name: str) -> Read:
    return lambda side: side.facts[name]


def _yes(name: str) -> Read:
    return lambda side: "yes" if side.facts[name] else "no"


def _fence(name: str) -> Read:
    def read(side: Side) -> object:
        fence = side.facts[name]
        assert isinstance(fence, list)
        return fence[0]

    return read


def _executions(step: str) -> Read:
    return lambda side: sum(m.kind == "call" and m.what == f"begin {step}" for m in side.moments)


def _owner_after_expiry(side: Side) -> object:
    """The owner in the first row that was seen after A's lease had ended."""
    paused = next(m.t for m in side.moments if m.what == "SIGSTOP worker A")
    rows = [m for m in side.moments if m.kind == "row"]
    ends = [m.data["lease_expires_at"] for m in rows if m.t <= paused]
    expires = ends[-1]
    assert isinstance(expires, float)
    later = [m.data["lease_owner"] or "nobody" for m in rows if m.t > expires]
    return next(iter(later), rows[-1].data["lease_owner"])


def _takeover(side: Side) -> object:
    seconds = side.facts["seconds from kill to takeover"]
    assert isinstance(seconds, float)
    return "under 2 s" if seconds < 2 else "2 to 8 s" if seconds < 8 else "over 8 s"


def _taken_over(side: Side) -> object:
    return "B" if "seconds from kill to takeover" in side.facts else "nobody, as long as we waited"


def _taken_away(side: Side) -> object:
    taken = any(m.kind == "owned" and "stuck" in str(m.data["reason"]) for m in side.moments)
    return "another worker takes it away" if taken else "it stays with A"


def _signal(side: Side) -> object:
    result = side.facts["result"]
    assert isinstance(result, list)
    return result[1]


def _payment(side: Side) -> object:
    return "it ends, and is recorded" if "end 0.0" in _told(side) else "it is interrupted"


def _told(side: Side) -> list[str]:
    return [m.what for m in side.moments if m.kind == "call"]


QUESTIONS = (
    Question(
        name="race",
        run="race",
        concept="claim",
        asks="Two workers look for the same run at the same moment. How many of them get it?",
        choices=("0", "1", "2"),
        read=_fact("owners that the first run was given to"),
    ),
    Question(
        name="race-without-lock",
        run="broken-claim",
        concept="claim",
        asks="The same, but the claim chooses its run without locking the row. How many get it?",
        choices=("0", "1", "2"),
        read=_fact("owners that the first run was given to"),
    ),
    Question(
        name="owner",
        run="pause",
        concept="lease",
        asks="A owns the run and is paused. Its lease ends at 16:05:00. Who owns it at 16:05:01?",
        choices=("A", "B", "nobody"),
        read=_owner_after_expiry,
    ),
    Question(
        name="generation",
        run="pause",
        concept="fence",
        asks="A was given generation 1. Which one is B given?",
        choices=("1", "2", "3"),
        read=_fence("fence of B"),
    ),
    Question(
        name="stale-commit",
        run="pause",
        concept="stale-write",
        asks="B owns the run. A commits its step, as the owner that it was. What comes back?",
        choices=("accepted", "LeaseLost", "UniqueViolation"),
        read=_fact("stale commit"),
    ),
    Question(
        name="stale-commit-temporal",
        run="pause",
        concept="stale-write",
        engine="temporal",
        asks="The same on Temporal: a completion with the token of the old attempt.",
        choices=("accepted", "ALREADY_EXISTS", "NOT_FOUND"),
        read=_fact("stale commit"),
    ),
    Question(
        name="stale-commit-unfenced",
        run="broken-fence",
        concept="fence",
        asks="By hand, but the record does not ask for generation and owner. What comes back?",
        choices=("accepted", "LeaseLost", "UniqueViolation"),
        read=_fact("stale commit"),
    ),
    Question(
        name="bill",
        run="pause",
        concept="idempotency",
        asks="Three steps; A was paused in the second. How many calls are on the bill, by hand?",
        choices=("3", "4", "6"),
        read=_fact("calls on the bill"),
    ),
    Question(
        name="report",
        run="pause",
        concept="idempotency",
        asks="And how many steps are in the report?",
        choices=("3", "4", "6"),
        read=_fact("steps in the report"),
    ),
    Question(
        name="recorded-step",
        run="kill",
        concept="checkpoint",
        asks="A recorded one step and was killed in the next. How often is the first executed?",
        choices=("1", "2"),
        read=_executions("0.0"),
    ),
    Question(
        name="step-in-flight",
        run="kill",
        concept="checkpoint",
        asks="And how often is the second one begun?",
        choices=("1", "2"),
        read=_executions("1.0"),
    ),
    Question(
        name="takeover",
        run="kill",
        concept="expiry",
        asks="Lease 4 s, renewed each 0.5 s, polled each 0.1 s. How long from kill to takeover?",
        choices=("under 2 s", "2 to 8 s", "over 8 s"),
        read=_takeover,
    ),
    Question(
        name="no-expiry",
        run="broken-expiry",
        concept="orphan",
        asks="The same, but an expired lease is no reason to take over. Who takes over from A?",
        choices=("B", "nobody, as long as we waited"),
        read=_taken_over,
    ),
    Question(
        name="stuck",
        run="stuck",
        concept="progress",
        asks="A's step hangs, A heartbeats on, others look at its progress. And the run?",
        choices=("it stays with A", "another worker takes it away"),
        read=_taken_away,
    ),
    Question(
        name="cancelled-orphan",
        run="cancel",
        concept="cancel",
        asks="A is paused, its run cancelled, A killed. B starts. How many steps does B begin?",
        choices=("0", "1", "2"),
        read=_fact("steps that B resumed"),
    ),
    Question(
        name="cancelled-orphan-resumed",
        run="broken-cancel",
        concept="cancel",
        asks="The same, but a takeover does not look at the request. How many steps does B begin?",
        choices=("0", "1", "2"),
        read=_fact("steps that B resumed"),
    ),
    Question(
        name="payment",
        run="boundary",
        concept="boundary",
        asks="A run is cancelled in the middle of an uninterruptible payment. And the payment?",
        choices=("it is interrupted", "it ends, and is recorded"),
        read=_payment,
    ),
    Question(
        name="waiting",
        run="signal",
        concept="signal",
        asks="A run waits for a person's answer. Who owns it meanwhile?",
        choices=("the worker that parked it", "nobody"),
        read=_fact("owner while it waits"),
    ),
    Question(
        name="signal-twice",
        run="signal",
        concept="signal",
        asks="Signal `answer-1` is sent twice: first `yes`, then `no`. What does the agent get?",
        choices=("yes", "no"),
        read=_signal,
    ),
    Question(
        name="model-calls",
        run="limits",
        concept="model-calls",
        asks="Two workers with 8 places each; 3 runs ask for 3 model calls each; the limit is 2. "
        "How many calls are in flight at most?",
        choices=("2", "4", "9"),
        read=_fact("most model calls at a time"),
    ),
    Question(
        name="budget",
        run="budget",
        concept="run-cost",
        asks="Each call may cost $0.0010, the run $0.0025. How many of 3 calls begin?",
        choices=("2", "3"),
        read=_fact("calls begun"),
    ),
    Question(
        name="rollback",
        run="atomic",
        concept="atomic-start",
        asks="By hand: insert an order, start its run in the same transaction, roll back. "
        "Does the run exist?",
        choices=("yes", "no"),
        read=_yes("after the rollback the run exists"),
    ),
    Question(
        name="rollback-temporal",
        run="atomic",
        concept="atomic-start",
        engine="temporal",
        asks="The same with a workflow: insert the order, start, roll back. Does the run exist?",
        choices=("yes", "no"),
        read=_yes("after the rollback the run exists"),
    ),
)
