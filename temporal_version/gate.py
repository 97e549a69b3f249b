"""Limits, exactly: one workflow that grants permits to runs, by signals.

Temporal limits what one worker does at a time and how fast a queue is served; how many runs are
active in all, or for one tenant, or how many model calls are in flight over all workers, it does
not. So a run that was started under limits asks here: `acquire`, wait for `granted`, `release`.
A permit covers several resources at once ("active" and "tenant:acme"), so nobody holds one while
waiting for another. Requests are granted first come, first served, among those that fit; a tenant
at its own limit holds nobody else up.

What keeps it exact when things die:

- a worker dies: grants are in this history, so nothing is lost and nothing leaks;
- a run ends without `release` (terminated): while somebody waits, a reaper asks the server every
  second which holders are closed;
- the gate is opened, or terminated and opened again, while runs are active: it first hears what
  they hold (or waits `EXPECT_FOR` for those whose workers are away), and then grants;
- a *paused* worker: its activity lost the lease and runs again under the same permit, so calls in
  flight may exceed the limit by the zombies that do not know yet. No permit can prevent that.

The price is in the README: events here and in the run, and one more round trip for each permit.
With no limits in force there is no gate and no price.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from temporal_version.messages import CLOSED_OWNERS, GATE_TYPE, GateState, Permit
from two_workers.protocol import Limits

REAP_EVERY = timedelta(seconds=1)
EXPECT_FOR = timedelta(seconds=10)
HISTORY_LIMIT = 2_000
"""Events after which the gate continues as new."""


@workflow.defn(name=GATE_TYPE)
class PermitGate:
    """Who may go on. State: the limits, who holds a permit, who waits."""

    @workflow.init
    def __init__(self, state: GateState) -> None:
        self.limits = state.limits
        self.holders = {permit.permit_id: permit for permit in state.holders}
        self.waiting = {permit.permit_id: permit for permit in state.waiting}
        self.expected = set(state.expected)
        self.telling: set[asyncio.Task[None]] = set()

    @workflow.run
    async def run(self, state: GateState) -> None:
        """Grant until there are no limits any more and nobody holds or waits."""
        reaper = asyncio.create_task(self._reap_closed_holders())
        await self._hear_expected_runs()
        while not self._idle():
            await workflow.wait_condition(
                lambda: self._next() is not None or self._idle() or self._may_continue_as_new()
            )
            while (permit := self._next()) is not None:
                del self.waiting[permit.permit_id]
                self.holders[permit.permit_id] = permit
                self._start_telling(permit)
            if self._may_continue_as_new():
                state = GateState(
                    limits=self.limits,
                    holders=tuple(self.holders.values()),
                    waiting=tuple(self.waiting.values()),
                )
                workflow.continue_as_new(state)
        reaper.cancel()

    @workflow.signal(name="acquire")
    def acquire(self, permit: Permit) -> None:
        """A run asks. Asking again for a permit it holds repeats the answer."""
        if permit.permit_id in self.holders:
            self._start_telling(permit)
        elif permit.held:
            self.holders[permit.permit_id] = permit
        else:
            self.waiting.setdefault(permit.permit_id, permit)

    @workflow.signal(name="release")
    def release(self, permit_id: str) -> None:
        """A run gives back, or stops waiting."""
        self.holders.pop(permit_id, None)
        self.waiting.pop(permit_id, None)

    @workflow.signal(name="joined")
    def joined(self, owner: str) -> None:
        """A run that was open before has told all that it holds."""
        self.expected.discard(owner)

    @workflow.signal(name="set_limits")
    def set_limits(self, limits: Limits) -> None:
        """From now on. Holders keep what they have."""
        self.limits = limits

    @workflow.query(name="state")
    def state(self) -> GateState:
        """For people and tests."""
        return GateState(
            limits=self.limits,
            holders=tuple(self.holders.values()),
            waiting=tuple(self.waiting.values()),
        )

    async def _hear_expected_runs(self) -> None:
        if self.expected:
            with suppress(TimeoutError):
                await workflow.wait_condition(lambda: not self.expected, timeout=EXPECT_FOR)

    def _idle(self) -> bool:
        nobody = not (self.holders or self.waiting or self.telling)
        return nobody and self.limits == Limits()

    def _long(self) -> bool:
        length = workflow.info().get_current_history_length()
        return length > HISTORY_LIMIT or workflow.info().is_continue_as_new_suggested()

    def _may_continue_as_new(self) -> bool:
        return self._long() and not self.telling

    def _next(self) -> Permit | None:
        """The first request that fits. None while the gate is about to continue as new."""
        if self._long():
            return None
        used = Counter(r for permit in self.holders.values() for r in permit.resources)
        for permit in self.waiting.values():
            if all(self._fits(resource, used[resource]) for resource in permit.resources):
                return permit
        return None

    def _fits(self, resource: str, used: int) -> bool:
        group, _, name = resource.partition(":")
        match group:
            case "active":
                most = self.limits.max_active
            case "tenant":
                most = self.limits.tenants.get(name, self.limits.max_active_per_tenant)
            case _:
                most = self.limits.pools.get(name)
        return most is None or used < most

    def _start_telling(self, permit: Permit) -> None:
        task = asyncio.create_task(self._tell(permit))
        self.telling.add(task)
        task.add_done_callback(self.telling.discard)

    async def _tell(self, permit: Permit) -> None:
        """The answer. A run that ended while it waited gives its permit back by not being there."""
        try:
            await workflow.get_external_workflow_handle(permit.owner).signal(
                "granted", permit.permit_id
            )
        except ApplicationError:
            self.release(permit.permit_id)

    async def _reap_closed_holders(self) -> None:
        while True:
            await workflow.wait_condition(lambda: bool(self.waiting))
            await workflow.sleep(REAP_EVERY)
            owners = sorted({permit.owner for permit in self.holders.values()})
            if not (self.waiting and owners):
                continue
            closed = await workflow.execute_activity(
                CLOSED_OWNERS,
                owners,
                result_type=list[str],
                start_to_close_timeout=timedelta(seconds=30),
                heartbeat_timeout=timedelta(seconds=10),
            )
            for permit in [p for p in self.holders.values() if p.owner in closed]:
                self.release(permit.permit_id)
