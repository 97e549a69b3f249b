"""What one process of this engine is told. Read from the environment once, at the edge.

All durations are in seconds. Each field says what goes wrong when it is too small.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from psycopg.conninfo import conninfo_to_dict
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from two_workers.errors import BadInput

PREFIX = "HAND_ROLLED_"


class Settings(BaseModel):
    """Frozen. Use `read_settings` to get one from environment variables."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    database_url: str = Field(min_length=1)

    # Ownership.
    lease_ttl: float = Field(default=10.0, gt=0)
    """How long a claim lasts without a renewal. Too small: a slow database costs a live worker
    its runs."""
    heartbeat_interval: float = Field(default=2.0, gt=0)
    """At least three renewals must fit into a lease, or one lost packet ends it."""
    lease_margin: float = Field(default=0.5, ge=0)
    """The worker stops trusting itself this long before its lease ends. Too small: a call begun
    in the last moment is still on its way when the successor begins its own."""
    stall_limit: float = Field(default=5.0, gt=0)
    """Heartbeats stop when the event loop did not tick for so long. Too small: a garbage
    collection looks like a stall."""
    progress_timeout: float | None = Field(default=None, gt=0)
    """A run whose owner beats but whose steps do not is taken away after so long. None: never.
    Must be longer than the longest call that beats nothing."""
    crash_detection: bool = False
    """Take over at once from a worker whose process died, instead of waiting for its lease."""
    crash_poll: float = Field(default=0.1, gt=0)
    crash_grace: float = Field(default=0.25, ge=0)
    """How long a freed lock must stay free before its worker counts as dead. Too small: a worker
    whose connection was cut, and that locks again at once, is declared dead."""

    # Work.
    concurrency: int = Field(default=8, ge=1)
    """Runs that one worker carries out at the same time. On the fast path it may own as many again,
    whose ends are being committed."""
    poll_interval: float = Field(default=0.5, gt=0)
    """Between two looks for work when no notification comes (jittered by half)."""
    notify: bool = True
    """Listen for new work and cancellations. Only lowers latency: polling alone is correct."""
    drain_timeout: float = Field(default=20.0, ge=0)
    """After a stop, steps under way may take so long; then they are interrupted and handed over."""
    retry_jitter: float = Field(default=0.2, ge=0, le=1)

    # Blame.
    suspect_after: int = Field(default=2, ge=1)
    """Crashes without a recorded step in between, after which a run is only run alone. 1 would
    send every run of a killed worker into quarantine, and its takeover would wait for idle
    workers."""
    max_crashes: int = Field(default=3, ge=1)
    """Crashes while running alone, after which a run is failed as poison."""
    max_takeaways: int = Field(default=5, ge=1)
    """Takeaways for lack of progress, without a recorded step in between, until a run is failed."""
    crash_backoff: float = Field(default=1.0, gt=0)

    # Connections.
    fast: bool = False
    """Commit the writes of many runs together (`fast/`). Needs prepared statements, so no pooler in
    transaction mode between here and the database."""
    pool_size: int = Field(default=4, ge=1)
    query_timeout: float = Field(default=5.0, gt=0)
    """Client-side bound of one statement: a half-open connection must not silence a worker."""
    connect_timeout: float = Field(default=5.0, gt=0)

    # Telemetry.
    prometheus: str | None = Field(default=None, pattern=r"^[^\s:]+:\d{1,5}$")
    """`host:port` at which a worker serves OpenMetrics text. None: nowhere."""
    otel: bool = False
    """A span of each step through the application's OpenTelemetry provider."""

    @model_validator(mode="after")
    def _fit_together(self) -> Settings:
        if self.heartbeat_interval * 3 > self.lease_ttl:
            raise ValueError(
                f"HAND_ROLLED_HEARTBEAT_INTERVAL must be at most a third of HAND_ROLLED_LEASE_TTL "
                f"({self.lease_ttl:g} s), found {self.heartbeat_interval:g} s; "
                "lower it or raise the lease"
            )
        if self.lease_margin * 2 > self.lease_ttl - self.heartbeat_interval:
            raise ValueError(
                f"HAND_ROLLED_LEASE_MARGIN ({self.lease_margin:g} s) leaves no time between a "
                f"heartbeat and the lease's end ({self.lease_ttl:g} s); lower it or raise the lease"
            )
        if self.otel and find_spec("opentelemetry") is None:
            raise ValueError(
                "HAND_ROLLED_OTEL needs OpenTelemetry, found none: pip install opentelemetry-sdk"
            )
        try:
            conninfo_to_dict(self.database_url)
        except Exception:  # psycopg's message may repeat the password
            raise ValueError(
                "DATABASE_URL must look like postgresql://user@host:5432/database"
            ) from None
        return self


def read_settings(env: Mapping[str, str]) -> Settings:
    """Settings from `DATABASE_URL` and `HAND_ROLLED_…`. Raises `BadInput` with one line."""
    found: dict[str, Any] = {
        name: env[PREFIX + name.upper()]
        for name in Settings.model_fields
        if env.get(PREFIX + name.upper(), "") != ""
    }
    found["database_url"] = env.get("DATABASE_URL", "")
    if not found["database_url"]:
        raise BadInput(
            "DATABASE_URL is not set: expected postgresql://user@host:5432/database "
            "(`two-workers up` starts one and prints its address)"
        )
    unknown = sorted(
        name
        for name in env
        if name.startswith(PREFIX)
        and name.removeprefix(PREFIX).lower() not in Settings.model_fields
    )
    if unknown:
        raise BadInput(
            f"unknown setting {unknown[0]}; known: "
            + ", ".join(PREFIX + name.upper() for name in Settings.model_fields)
        )
    try:
        return Settings.model_validate(found)
    except ValidationError as error:
        raise BadInput(_one_line(error)) from None


def _one_line(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    message = first["msg"].removeprefix("Value error, ")
    if not first["loc"]:
        return f"impossible settings: {message}"
    return f"{PREFIX}{str(first['loc'][0]).upper()}: {message}; found {first['input']!r}"
