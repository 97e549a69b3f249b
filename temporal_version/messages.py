"""What crosses the wire between client, workflow, activity and gate: frozen pydantic models.

Each is the single argument or result of something, so that fields can be added without breaking
runs that are open.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from temporalio.common import SearchAttributeKey

from two_workers.apps import Fence
from two_workers.money import MicroUSD
from two_workers.protocol import Limits

RUN_TYPE = "AgentRun"
GATE_TYPE = "PermitGate"
CLOSED_OWNERS = "closed_owners"

PAYLOAD_LIMIT = 1_900_000
"""Bytes of JSON that fit one payload: the server's 2 MB, less what a cipher and base64 add."""
FAN_OUT = 200
"""Steps of one batch in flight at a time. The server refuses a run's 2,001st pending activity, and
older ones a workflow task of more than 4 MB; either would be refused again for ever."""
MESSAGE_LIMIT = 4_000
"""Characters of an error's message that are kept: history is no place for a whole reply."""

TENANT = SearchAttributeKey.for_keyword("TwoWorkersTenant")
KIND = SearchAttributeKey.for_keyword("TwoWorkersKind")
STATE = SearchAttributeKey.for_keyword("TwoWorkersState")
COST = SearchAttributeKey.for_int("TwoWorkersCost")
SEARCH_ATTRIBUTES = (TENANT, KIND, STATE, COST)


def fence(started: datetime, attempt: int) -> Fence:
    """Rises with every attempt of a step. Its number alone does not: `reset` sets it to 1 again.

    The start time is the server's, so it rises as far as the clocks of its hosts agree.
    """
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return (started.astimezone(UTC) - epoch) // timedelta(microseconds=1), attempt


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True)


class Signal(_Message):
    """One signal to a run; `signal_id` makes it arrive once."""

    signal_id: str
    name: str
    payload: JsonValue = None


class Recorded(_Message):
    """A step's outcome as continue-as-new carries it: the journal that history no longer is."""

    fingerprint: str
    outcome: JsonValue


class Carried(_Message):
    """What a run takes along when it continues as new. Nothing else survives."""

    batches: tuple[tuple[Recorded, ...], ...] = ()
    cost: MicroUSD = 0
    state: str | None = None
    seen_signals: tuple[str, ...] = ()
    undelivered: tuple[Signal, ...] = ()
    admitted: bool = False


class RunInput(_Message):
    """The argument of the workflow. `gate` is set when limits were in force at the start."""

    kind: str
    payload: JsonValue
    tenant: str
    budget: MicroUSD | None
    gate: str | None = None
    carried: Carried = Field(default_factory=Carried)


class StepCall(_Message):
    """The argument of an activity. `step` is None when the step travels by reference."""

    key: str
    step: JsonValue = None


class StepResult(_Message):
    """The result of an activity: the effect's result as JSON, and what it cost."""

    value: JsonValue
    cost: MicroUSD = 0


class Tries(_Message):
    """What the next attempt must know of the earlier ones. Travels in the heartbeat details.

    Temporal counts attempts, whatever ended them. We count an effect's own failures, and the
    attempts that were nobody's fault (`RetryLater`, a worker that stopped in good order): the
    remaining ones lost their worker.
    """

    checkpoint: JsonValue = None
    failures: int = 0
    excused: int = 0


class Permit(_Message):
    """A request to the gate: all `resources` at once, for the run `owner`.

    `held`: the owner was active before there were limits. It counts, and cannot be refused.
    """

    permit_id: str
    owner: str
    resources: tuple[str, ...]
    held: bool = False


class GateState(_Message):
    """What the gate begins with, and takes along when it continues as new.

    `expected` are runs that were open before the gate was: it grants nothing before they told what
    they hold.
    """

    limits: Limits = Field(default_factory=Limits)
    holders: tuple[Permit, ...] = ()
    waiting: tuple[Permit, ...] = ()
    expected: tuple[str, ...] = ()
