"""Every error that crosses the seam, in one small hierarchy.

Three readers, three groups:

- an *agent* sees `StepFailed`: a step whose attempts ran out, which it may handle;
- an *effect* raises `PermanentFailure` or `RetryLater` to steer the engine's retries
  (any other exception is retried by the step's policy);
- a *client* sees the `RunError`s and `BadInput`.

A message says what was expected, what was found and what to do.
"""

from __future__ import annotations

from two_workers.money import MicroUSD, dollars


class TwoWorkersError(Exception):
    """Base of every error that this package raises."""


class BadInput(TwoWorkersError):
    """A person gave something that cannot work. The CLI prints one line and exits with 2."""


# What an agent sees.


class StepFailed(TwoWorkersError):
    """A step whose attempts ran out, or that failed for good. Raised inside the agent.

    It is recorded like a result, so a replay raises it again at the same place.
    """

    def __init__(self, *, step: str, error: str, message: str, attempts: int) -> None:
        super().__init__(f"step {step} failed after {attempts} attempt(s): {error}: {message}")
        self.step = step
        self.error = error
        self.message = message
        self.attempts = attempts


class AgentError(TwoWorkersError):
    """The agent broke a rule of the seam, for instance by awaiting something else than a step."""


class ReplayMismatch(TwoWorkersError):
    """The agent asked for another step than the one recorded at this place.

    The code changed while the run was open. The run is neither failed nor crashed: it waits for
    a worker whose code matches.
    """

    def __init__(self, *, key: str, recorded: str, asked: str) -> None:
        super().__init__(
            f"replay of {key}: recorded {recorded}, but the agent now asks for {asked}; "
            "run a worker with the code that recorded it, or cancel the run"
        )
        self.key = key
        self.recorded = recorded
        self.asked = asked


class BudgetExceeded(TwoWorkersError):
    """The worst case of what comes next does not fit the run's budget. Fails the run."""

    def __init__(self, *, budget: MicroUSD, spent: MicroUSD, worst_case: MicroUSD) -> None:
        super().__init__(
            f"the run's budget is {dollars(budget)}, {dollars(spent)} are spent, and what comes "
            f"next may cost up to {dollars(worst_case)}; start a new run with a larger budget, "
            "or lower the worst case"
        )
        self.budget = budget
        self.spent = spent
        self.worst_case = worst_case


# What an effect raises.


class PermanentFailure(TwoWorkersError):
    """Trying again cannot help. The step fails at once, whatever its retry policy says."""


class RetryLater(TwoWorkersError):
    """Try again, but not before `after` seconds (a 429 with Retry-After).

    Does not count against the step's attempts: the other side asked for patience.
    """

    def __init__(self, message: str, *, after: float) -> None:
        super().__init__(message)
        self.after = after


# What a client sees.


class RunError(TwoWorkersError):
    """Base of the errors that concern one run."""

    def __init__(self, run_id: str, message: str) -> None:
        super().__init__(message)
        self.run_id = run_id


class RunNotFound(RunError):
    """No run has this id."""

    def __init__(self, run_id: str) -> None:
        super().__init__(
            run_id, f"no run {run_id!r}; `two-workers runs list` shows those that exist"
        )


class RunConflict(RunError):
    """The id is taken by a run with another kind, payload, tenant or budget."""

    def __init__(self, run_id: str) -> None:
        super().__init__(
            run_id,
            f"run {run_id!r} exists with other content; choose a new id, or send the same content",
        )


class RunFailed(RunError):
    """`result` of a run that failed. `failure` says why."""

    def __init__(self, run_id: str, failure: str) -> None:
        super().__init__(run_id, f"run {run_id!r} failed: {failure}")
        self.failure = failure


class RunCancelled(RunError):
    """`result` of a run that was cancelled."""

    def __init__(self, run_id: str) -> None:
        super().__init__(run_id, f"run {run_id!r} was cancelled")


class RunClosed(RunError):
    """A signal for a run that has already ended."""

    def __init__(self, run_id: str, state: str) -> None:
        super().__init__(run_id, f"run {run_id!r} is already {state}: it takes no more signals")


class EngineUnavailable(BadInput):
    """The engine's server cannot be reached, or refuses us."""
