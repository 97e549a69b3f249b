"""A worker process of the arm: `concurrency` slots of the reader's worker, with apps as agents."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

from pydantic import JsonValue

from comparison.ledger import NO_FENCE
from comparison.story import worker as reader
from comparison.story.adapter.drive import Outcome, drive, perform
from comparison.story.adapter.settings import StorySettings, open_pool
from two_workers import App, Call, Step
from two_workers.steps import dump_outcome, load_outcome


class StoryWorker:
    """The `Worker` of the story arm."""

    def __init__(self, settings: StorySettings, apps: Sequence[App], worker_id: str) -> None:
        self._settings = settings
        self._apps = {app.kind: app for app in apps}
        self._worker_id = worker_id
        self._resources: dict[str, Any] = {}

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set; then finish the runs at hand. Raises `EngineUnavailable`."""
        settings = self._settings
        async with (
            contextlib.AsyncExitStack() as stack,
            open_pool(settings, self._worker_id) as pool,
        ):
            for kind, app in self._apps.items():
                self._resources[kind] = await stack.enter_async_context(app.resources())
            worker = reader.Worker(
                pool,
                self._worker_id,
                self._carry_out,
                lease=settings.lease,
                beat_every=settings.heartbeat_interval,
                poll_every=settings.poll_interval,
            )
            await asyncio.gather(*(worker.work(stop) for _ in range(settings.concurrency)))

    async def _carry_out(self, run: reader.Run) -> JsonValue:
        """The reader's agent: whatever app the run's task names."""
        app = self._apps[run.task["kind"]]

        async def once(place: str, step: Step[Any]) -> Outcome:
            key = f"{run.run_id}/{place}"

            async def act() -> JsonValue:
                outcome, attempt = await perform(app, step, self._call(run, app, key))
                return {
                    "kind": step.kind,
                    "attempt": attempt,
                    "worker": self._worker_id,
                    "outcome": dump_outcome(step, outcome),
                }

            recorded = await run.step(key, act)
            return load_outcome(step, recorded["outcome"])

        payload = run.task["payload"]
        return await drive(app, payload, boundary=run.stop_if_cancelled, once=once)

    def _call(self, run: reader.Run, app: App, key: str) -> Call:
        return Call(
            run_id=run.run_id,
            key=key,
            fence=NO_FENCE,
            attempt=1,
            engine="story",
            worker=self._worker_id,
            resources=self._resources[app.kind],
            beat=lambda detail: None,
        )
