"""Every setting of the Temporal engine, and the three arms that the comparison measures.

`stock` is what the documentation gives a new user, plus the two timeouts that any guide demands.
`tuned` answers the questions of the hand-built store with the same numbers: `heartbeat_timeout` is
its lease, `heartbeat_throttle` its heartbeat interval. `server` is `tuned` on an embedded server
whose own floors are lowered (`server.py`); against a server of yours its client side is `tuned`.

An arm gives defaults; each field can be set alone: `TEMPORAL_VERSION_HEARTBEAT_TIMEOUT=10`.
Where the server is, and how to reach it (TLS, API key, namespace), is none of our business:
`temporalio.envconfig` reads `TEMPORAL_ADDRESS`, `TEMPORAL_API_KEY`, profiles and so on.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from two_workers.errors import BadInput

PREFIX = "TEMPORAL_VERSION_"

Arm = Literal["stock", "tuned", "server"]

STOCK: Mapping[str, Any] = {
    "heartbeat_timeout": 30.0,
    "heartbeat_throttle": None,  # the SDK's own: 0.8 of the heartbeat timeout
    "sticky_timeout": 10.0,
    "workflow_task_timeout": 10.0,
    "retry_initial": 1.0,
    "retry_backoff": 2.0,
    "wait_for_cancellation": False,
    "eager_activities": True,
    "grace": 0.0,
}
TUNED: Mapping[str, Any] = {
    "heartbeat_timeout": 6.0,
    "heartbeat_throttle": 1.0,
    "sticky_timeout": 1.0,
    "workflow_task_timeout": 2.0,
    "retry_initial": 0.1,
    "retry_backoff": 1.0,
    "wait_for_cancellation": True,
    "eager_activities": True,
    "grace": 5.0,
}
ARMS: Mapping[Arm, Mapping[str, Any]] = {"stock": STOCK, "tuned": TUNED, "server": TUNED}


class Settings(BaseModel):
    """Settings of a client and of a worker. Durations are seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    arm: Arm = "tuned"
    task_queue: str = Field(default="two-workers", min_length=1, max_length=100)
    """Prefix of the task queues: one for each kind of app, so a worker gets only what it knows."""

    heartbeat_timeout: float = Field(gt=0)
    """An activity that was silent for so long lost its worker: the lease."""
    heartbeat_throttle: float | None = Field(gt=0)
    """Longest time between heartbeats that leave the process; also how stale a checkpoint is.

    None leaves it to the SDK: 0.8 of the heartbeat timeout.
    """
    progress_timeout: float | None = Field(default=None, gt=0)
    """Stop beating for an effect that made no progress for so long. None: its timeout decides."""
    sticky_timeout: float = Field(gt=0)
    """How long a workflow task waits for the worker that has the workflow in its cache."""
    workflow_task_timeout: float = Field(ge=1, le=120)
    """How long a worker may take for one step of the driver; what its death costs at worst."""
    retry_initial: float = Field(gt=0)
    """Delay before a step lost with its worker starts elsewhere. The server's floor is about 1."""
    retry_backoff: float = Field(ge=1)
    """Factor on that delay for each further loss of the same step."""
    max_losses: int = Field(default=20, ge=1)
    """Give a step up as poison when it lost so many workers."""
    step_deadline: float = Field(default=7 * 86400.0, gt=0)
    """Give a step up that did not end in so long, retries and waiting for a worker included."""
    wait_for_cancellation: bool
    """A cancelled run ends only after its activities did (WAIT_CANCELLATION_COMPLETED)."""
    eager_activities: bool
    """The worker that asks for a step gets it with the reply, if it has a slot that no poll holds.

    One round trip and one transaction of the server less. It skips the queue, but not priority and
    fairness: while steps wait there, polls hold every slot.
    """
    concurrency: int = Field(default=8, ge=1)
    """Effects at a time in one worker, for each kind."""
    queue_rate: float | None = Field(default=None, gt=0)
    """Effects a second that the server hands out for each kind, over all workers. The setting of
    the worker that polled last decides, so give all the same."""
    grace: float = Field(ge=0)
    """How long a stopping worker lets effects run before it hands them over."""

    reference_above: int = Field(default=16_384, ge=0)
    """Steps of more bytes travel by reference: the activity asks the workflow for them."""
    payload_store: Path | None = None
    """A directory that all workers share: payloads above `reference_above` bytes lie there."""
    codec_key: SecretStr | None = None
    """Encrypt every payload with this key (base64 of 32 bytes) before it leaves the process."""
    deployment: str | None = Field(default=None, pattern=r"^[^:]+:[^:]+$")
    """`name:build` switches Worker Versioning on: runs stay with the build that began them."""
    prometheus: str | None = None
    """`host:port` at which a worker serves the SDK's metrics."""
    otel: bool = False
    """Trace through the application's OpenTelemetry provider."""

    connection: Mapping[str, str] = Field(default_factory=dict, repr=False)
    """The `TEMPORAL_*` variables: what `temporalio.envconfig` reads."""

    @model_validator(mode="after")
    def _beats_fit_the_timeout(self) -> Settings:
        if self.beat_interval * 2 > self.heartbeat_timeout:
            raise ValueError(
                f"heartbeat_throttle={self.beat_interval} must be at most half of "
                f"heartbeat_timeout={self.heartbeat_timeout}, or one lost beat loses the step"
            )
        return self

    @property
    def beat_interval(self) -> float:
        """Seconds between two beats of an effect that does not call `beat` itself."""
        return self.heartbeat_throttle or self.heartbeat_timeout / 2

    def queue(self, kind: str) -> str:
        """The task queue of one kind of app."""
        return f"{self.task_queue}-{kind}"

    @property
    def gate(self) -> str:
        """Workflow id and task queue of the permit gate (`gate.py`)."""
        return f"{self.task_queue}-gate"


def read(env: Mapping[str, str]) -> Settings:
    """Settings from environment variables. Raises `BadInput` with one line per mistake."""
    known = set(Settings.model_fields) - {"connection"}
    given = {k.removeprefix(PREFIX).lower(): v for k, v in env.items() if k.startswith(PREFIX)}
    if unknown := set(given) - known:
        names = ", ".join(PREFIX + name.upper() for name in sorted(unknown))
        raise BadInput(f"unknown setting {names}; known: {', '.join(sorted(known))}")
    try:
        arm = TypeAdapter[Arm](Arm).validate_python(given.pop("arm", "tuned"))
    except ValidationError as error:
        raise BadInput(f"{PREFIX}ARM: {error.errors()[0]['msg']}") from error
    connection = {
        k: v for k, v in env.items() if k.startswith("TEMPORAL_") and not k.startswith(PREFIX)
    }
    try:
        return Settings(**{**ARMS[arm], **given, "arm": arm, "connection": connection})
    except ValidationError as error:
        found = "; ".join(
            f"{PREFIX}{str(e['loc'][0]).upper()}: {e['msg']} (found {e['input']!r})"
            if e["loc"]
            else str(e["msg"])
            for e in error.errors(include_url=False)
        )
        raise BadInput(f"settings of the Temporal engine: {found}") from error
