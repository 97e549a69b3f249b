"""What a client sends and gets, beside the seam's own records. OpenAPI is made from these."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from two_workers import MicroUSD, RunState, RunView, StepRecord

Key = Annotated[str, Field(min_length=1, max_length=200)]


class StartRun(BaseModel):
    """A request to run the agent. `payload` is what the agent takes; see `GET /api/app`.

    Lower `priority` goes first. `budget` is the most the run may cost, in micro-dollars.
    """

    model_config = ConfigDict(extra="forbid")
    payload: JsonValue
    priority: int = Field(default=3, ge=1, le=5)
    budget: MicroUSD | None = Field(default=None, ge=0)


class Cancel(BaseModel):
    """Why a run is cancelled; kept with the run."""

    model_config = ConfigDict(extra="forbid")
    reason: str = Field(default="", max_length=500)


class SendSignal(BaseModel):
    """What the waiting agent is told. The same `signal_id` is delivered once."""

    model_config = ConfigDict(extra="forbid")
    payload: JsonValue = None
    signal_id: Key


class Approve(BaseModel):
    """A person's decision: the payload of the signal `approve`, once per `signal_id`."""

    model_config = ConfigDict(extra="forbid")
    approved: bool = True
    by: str = Field(min_length=1, max_length=200)
    comment: str = Field(default="", max_length=2_000)
    signal_id: Key


class AppInfo(BaseModel):
    """What this service serves. `payload_schema` is JSON Schema."""

    kind: str
    engine: str
    payload_schema: dict[str, JsonValue]
    tenant: str | None
    demo: bool


class Runs(BaseModel):
    """Runs, newest first."""

    runs: list[RunView]


class Steps(BaseModel):
    """The recorded steps, in the order of their keys."""

    steps: list[StepRecord]


class Result(BaseModel):
    """How a run stands: `result` once it succeeded, `failure` once it failed."""

    run_id: str
    state: RunState
    result: JsonValue = None
    failure: str | None = None
