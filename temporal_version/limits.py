"""Limits from a client's side: is there a gate, what does it hold the runs to, change it.

The gate's own history is the record of the limits, so they can be read and set while no worker is
there. No gate means no limits, and then no run asks for anything.

A client that starts many runs a second does not ask before each one whether there is a gate: it
believes an answer for `BELIEVED` seconds. So whoever opens a gate waits that long, and then looks
once more for runs that were started without it. A gate that is gone does no harm to a run that was
told of it: its request meets nobody, which is no limit.
"""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta

from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from temporal_version.messages import GATE_TYPE, RUN_TYPE, GateState
from temporal_version.settings import Settings
from two_workers.protocol import Limits

TASK_TIMEOUT = timedelta(seconds=1)
"""A worker that dies with the gate's task in hand stops all admission for so long, no longer."""

BELIEVED = 0.5
"""Seconds, counted from when the server was asked."""


class Belief:
    """Whether the gate is open, as one client knows it."""

    def __init__(self, client: Client, settings: Settings) -> None:
        self._client = client
        self._settings = settings
        self._asking = asyncio.Lock()  # many starts at a time ask once
        self._open = False
        self._asked: float | None = None

    async def gate(self) -> str | None:
        """The gate that a run must be told of when it is started, if there is one."""
        async with self._asking:
            now = time.monotonic()
            if self._asked is None or now - self._asked > BELIEVED:
                self._open = await gate_in_force(self._client, self._settings)
                self._asked = now
        return self._settings.gate if self._open else None


async def gate_in_force(client: Client, settings: Settings) -> bool:
    """True when the gate is open: one cheap read, which needs no worker."""
    try:
        found = await client.get_workflow_handle(settings.gate).describe()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return False
        raise
    return found.status is WorkflowExecutionStatus.RUNNING


async def read_limits(client: Client, settings: Settings) -> Limits:
    """The limits as last set, whether or not the gate has read them yet."""
    if not await gate_in_force(client, settings):
        return Limits()
    limits = Limits()
    decode = client.data_converter.decode
    async for event in client.get_workflow_handle(settings.gate).fetch_history_events():
        match event.event_type:
            case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
                payloads = event.workflow_execution_started_event_attributes.input.payloads
                [state] = await decode(payloads, [GateState])
                limits = state.limits
            case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
                signal = event.workflow_execution_signaled_event_attributes
                if signal.signal_name == "set_limits":
                    [limits] = await decode(signal.input.payloads, [Limits])
            case _:
                pass
    return limits


async def replace_limits(client: Client, settings: Settings, limits: Limits) -> None:
    """Tell the gate, and open it if there is none. No limits and no gate: nothing to do."""
    in_force = await gate_in_force(client, settings)
    if limits == Limits() and not in_force:
        return
    open_runs = () if in_force else await _open_runs(client, settings)
    await client.start_workflow(
        GATE_TYPE,
        GateState(limits=limits, expected=open_runs),
        id=settings.gate,
        task_queue=settings.gate,
        task_timeout=TASK_TIMEOUT,
        start_signal="set_limits",
        start_signal_args=[limits],
    )
    for run_id in open_runs:
        await _tell(client, settings, run_id)
    if not in_force:
        await asyncio.sleep(BELIEVED)
        for run_id in set(await _open_runs(client, settings)).difference(open_runs):
            await _tell(client, settings, run_id)


async def _open_runs(client: Client, settings: Settings) -> tuple[str, ...]:
    """Runs that began without limits, or under a gate that is gone. They count from now on.

    They are found through visibility, which lags: one that was started just now may be missed, and
    then runs outside of the limits until its end.
    """
    query = f"WorkflowType = '{RUN_TYPE}' AND ExecutionStatus = 'Running'"
    return tuple(
        [
            found.id
            async for found in client.list_workflows(query)
            if found.task_queue.startswith(settings.queue(""))
        ]
    )


async def _tell(client: Client, settings: Settings, run_id: str) -> None:
    gate = client.get_workflow_handle(settings.gate)
    try:
        await client.get_workflow_handle(run_id).signal("limits_now", settings.gate)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        await gate.signal("joined", run_id)  # it has just ended, and holds nothing
