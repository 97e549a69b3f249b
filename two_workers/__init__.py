"""Two workers picked up the same investigation. This package is the seam between the two answers.

An app writes an agent with `do` and `do_all`, registers its effects in an `App`, and reaches an
engine with `connect(name)`.
"""

from two_workers.apps import App, Call, Effect, Fence, Retry, load_app
from two_workers.engines import connect, engine_names, engine_plugin
from two_workers.errors import (
    AgentError,
    BadInput,
    BudgetExceeded,
    EngineUnavailable,
    PermanentFailure,
    ReplayMismatch,
    RetryLater,
    RunCancelled,
    RunClosed,
    RunConflict,
    RunFailed,
    RunNotFound,
    StepFailed,
    TwoWorkersError,
)
from two_workers.money import MicroUSD
from two_workers.protocol import (
    Engine,
    EnginePlugin,
    Limits,
    Run,
    RunState,
    RunView,
    StepRecord,
    Worker,
)
from two_workers.steps import (
    Batch,
    Done,
    Sleep,
    Step,
    WaitForSignal,
    advance,
    close,
    do,
    do_all,
    fingerprint,
)

__all__ = [
    "AgentError",
    "App",
    "BadInput",
    "Batch",
    "BudgetExceeded",
    "Call",
    "Done",
    "Effect",
    "Engine",
    "EnginePlugin",
    "EngineUnavailable",
    "Fence",
    "Limits",
    "MicroUSD",
    "PermanentFailure",
    "ReplayMismatch",
    "Retry",
    "RetryLater",
    "Run",
    "RunCancelled",
    "RunClosed",
    "RunConflict",
    "RunFailed",
    "RunNotFound",
    "RunState",
    "RunView",
    "Sleep",
    "Step",
    "StepFailed",
    "StepRecord",
    "TwoWorkersError",
    "WaitForSignal",
    "Worker",
    "advance",
    "close",
    "connect",
    "do",
    "do_all",
    "engine_names",
    "engine_plugin",
    "fingerprint",
    "load_app",
]
