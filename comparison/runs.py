"""The runs of a campaign, seen through the engine's own client: started, cancelled, ended."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from pydantic import JsonValue

from comparison.evidence import CancelCase, Cancellation, End, Start
from comparison.patience import patiently
from two_workers import Engine, MicroUSD, Run, RunCancelled, RunFailed, RunNotFound, RunView

_LONG = 600.0  # seconds; the campaign's own bounds are shorter
_QUESTIONS = 8  # at a time, to a server that has done its work


@dataclass(frozen=True)
class _Ended:
    """How a run ended when that was first seen."""

    t_ns: int
    view: RunView
    result: JsonValue


class Runs:
    """Starts runs and watches each of them to its end.

    Ids begin with a tag of this campaign, since a server that is not ours may keep older runs.
    """

    def __init__(self, engine: Engine, kind: str, payloads: Sequence[JsonValue]) -> None:
        self._tag = secrets.token_hex(3)
        self._engine = engine
        self._kind = kind
        self._payloads = payloads
        self._watchers: dict[str, asyncio.Task[None]] = {}
        self._ended: dict[str, _Ended] = {}
        self._change = asyncio.Event()
        self._failure: Exception | None = None
        self._cancelled: set[str] = set()
        self.starts: list[Start] = []

    async def start(
        self,
        name: str,
        question: int,
        *,
        twin: bool,
        tenant: str = "default",
        budget: MicroUSD | None = None,
    ) -> str:
        """Start a run and note the acknowledgement. Returns its id."""
        run_id = f"{self._tag}.{name}"
        payload = self._payloads[question % len(self._payloads)]
        run = Run(run_id=run_id, kind=self._kind, payload=payload, tenant=tenant, budget=budget)
        await patiently(lambda: self._engine.start(run))  # it starts once, however often asked
        self.starts.append(
            Start(run=run_id, question=question, t_ns=time.monotonic_ns(), twin=twin)
        )
        self._watchers[run_id] = asyncio.create_task(self._watch(run_id))
        return run_id

    async def cancel(self, run: str, case: CancelCase) -> Cancellation:
        """Ask for a cancellation; its end is noted by the run's watcher."""
        self._cancelled.add(run)
        before = (await patiently(lambda: self._engine.get(run))).state
        requested = time.monotonic_ns()
        view = await patiently(lambda: self._engine.cancel(run, reason="the comparison cancels it"))
        return Cancellation(
            run=run,
            case=case,
            state_before=before,
            requested_ns=requested,
            acknowledged_ns=time.monotonic_ns(),
            ended_ns=None,
            state_after=view.state,
        )

    def with_end(self, cancellation: Cancellation) -> Cancellation:
        """A cancellation with what its run came to."""
        ended = self._ended.get(cancellation.run)
        if ended is None:
            return cancellation
        return cancellation.model_copy(
            update={"ended_ns": ended.t_ns, "state_after": ended.view.state}
        )

    def was_cancelled(self, run: str) -> bool:
        """True when the harness asked for the run's cancellation."""
        return run in self._cancelled

    def has_ended(self, run: str) -> bool:
        """True once the run's end has been seen."""
        return run in self._ended

    @property
    def open_runs(self) -> set[str]:
        """Runs that have not ended and were not cancelled."""
        return {start.run for start in self.starts} - self._ended.keys() - self._cancelled

    @property
    def investigations(self) -> int:
        """How many runs were started to be investigated under faults."""
        return sum(".run-" in start.run for start in self.starts)

    async def until_open_below(self, limit: int) -> None:
        """Wait until fewer than `limit` runs are open."""
        while len(self.open_runs) >= limit:
            await self._until_change()

    async def until_ended(self, runs: Iterable[str], *, timeout: float) -> bool:
        """Wait until all of `runs` have ended; False after `timeout` seconds."""
        wanted = set(runs)
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while wanted - self._ended.keys():
                    await self._until_change()
        return wanted <= self._ended.keys()

    async def until_all_ended(self, *, timeout: float) -> bool:
        """Wait until every run that was started has ended."""
        return await self.until_ended((start.run for start in self.starts), timeout=timeout)

    async def ends(self) -> list[End]:
        """Each run that still exists, looked at a second time: an end must never change.

        A run that has not ended is there too, in the state in which it is.
        """
        at_a_time = asyncio.Semaphore(_QUESTIONS)

        async def end(run: str) -> End | None:
            async with at_a_time:
                return await self._end(run)

        found = await asyncio.gather(*(end(start.run) for start in self.starts))
        return [end for end in found if end is not None]

    async def close(self) -> None:
        """Stop watching."""
        for watcher in self._watchers.values():
            watcher.cancel()
        await asyncio.gather(*self._watchers.values(), return_exceptions=True)

    async def _end(self, run: str) -> End | None:
        try:
            view = await self._engine.get(run)
        except RunNotFound:
            return None
        ended = view.state.is_final
        result = await self._result(run, timeout=5.0) if ended else None
        first = self._ended.get(run) or _Ended(time.monotonic_ns(), view, result)
        return End(
            run=run,
            state=first.view.state,
            t_ns=first.t_ns,
            result=first.result,
            failure=first.view.failure,
            steps=tuple(await self._engine.steps(run)),
            state_again=view.state,
            result_again=result,
        )

    async def _watch(self, run: str) -> None:
        try:
            result = await patiently(lambda: self._result(run, timeout=_LONG))
            t_ns = time.monotonic_ns()
            view = await patiently(lambda: self._engine.get(run))
            self._ended[run] = _Ended(t_ns, view, result)
        except Exception as error:  # raised to whoever waits for a change
            self._failure = error
        change, self._change = self._change, asyncio.Event()
        change.set()

    async def _until_change(self) -> None:
        """Wait until a run has ended. Raises what kept a watcher from watching."""
        change = self._change
        if self._failure is not None:
            raise self._failure
        await change.wait()

    async def _result(self, run: str, *, timeout: float) -> JsonValue:
        """The result of a run; None when it failed or was cancelled."""
        try:
            return await self._engine.result(run, timeout=timeout)
        except (RunFailed, RunCancelled):
            return None
