"""A bench: one engine with real worker processes, and everything a scenario does or sees.

A scenario is a function over a bench. It starts runs and workers, breaks them, waits for what they
do, and says what it found: `fact` for a reader, `check` for what must hold.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGTERM
from typing import Any, TypeVar

from pydantic import JsonValue

from comparison.cluster import Cluster, Process
from comparison.mapping.recording import Check, Moment, Side
from comparison.mapping.scenarios.watch import Observer, moment
from comparison.mapping.tour.steps import Tour
from two_workers import Engine, Run, RunCancelled, RunFailed, RunState

T = TypeVar("T")
DEADLINE = float(os.environ.get("STUDY_DEADLINE", "60"))
"""Seconds that anything may take before the scenario gives up. A broken store is given less."""

LOGGED = (
    ("hand_rolled", "lost"), ("hand_rolled", "dead"), ("hand_rolled", "replay"),
    ("temporal", "not found on completion"), ("temporal", "Nondeterminism"),
)  # fmt: skip
"""What to keep of the workers' own words, by engine."""


class NotSeen(RuntimeError):
    """Something that a scenario waited for did not happen in time: `invariant` is not kept."""

    def __init__(self, invariant: str, message: str) -> None:
        super().__init__(message)
        self.invariant = invariant


@dataclass(eq=False)
class WorkerProcess:
    """A worker by its letter."""

    letter: str
    process: Process

    @property
    def worker_id(self) -> str:
        """What the engine calls it."""
        return self.process.ready.result()


@dataclass
class Bench:
    """One scenario on one engine."""

    name: str
    engine: Engine
    env: dict[str, str]
    settings: dict[str, str]
    directory: Path
    cluster: Cluster
    observer: Observer
    orders_url: str
    """A PostgreSQL database for an app's own data."""
    story: str = ""
    """The run that the timeline is to tell of, when it is not the first."""
    began: float = field(default_factory=time.time)
    workers: list[WorkerProcess] = field(default_factory=list)
    _mourned: list[WorkerProcess] = field(default_factory=list)
    _done: list[Moment] = field(default_factory=list)
    _facts: dict[str, JsonValue] = field(default_factory=dict)
    _checks: list[Check] = field(default_factory=list)

    # What a scenario does.

    async def start(self, kind: str, plan: Tour, **run: Any) -> str:
        """Start a run; its id begins with `run_123`, as in the story."""
        run_id = f"run_123-{uuid.uuid4().hex[:4]}"
        self.observer.watch(run_id)
        await self.engine.start(
            Run(run_id=run_id, kind=kind, payload=plan.model_dump(mode="json"), **run)
        )
        self.did(run_id, f"start {kind}: {', '.join(plan.places)}")
        return run_id

    async def worker(self, *apps: str, **env: str) -> WorkerProcess:
        """Start a worker process and wait until it is ready."""
        letter = "ABCDEFGHIJ"[len(self.workers)]
        paths = [f"comparison.mapping.tour.app:{app}" for app in apps or ("TOUR",)]
        command = [
            *(sys.executable, "-m", "two_workers.cli", "worker", "--engine", self.engine.name),
            *(word for path in paths for word in ("--app", path)),
        ]
        process = await self.cluster.start(
            f"{self.engine.name}-{letter}",
            command,
            {**self.env, "STUDY_DIR": str(self.directory), **env},
            ready=r"^worker (\S+) ready",
        )
        started = WorkerProcess(letter, process)
        self.workers.append(started)
        self.did("", f"worker {letter} starts")
        return started

    async def pause(self, worker: WorkerProcess) -> None:
        """SIGSTOP, confirmed by the kernel."""
        await worker.process.stopped()
        self.did("", f"SIGSTOP worker {worker.letter}")

    def resume(self, worker: WorkerProcess) -> None:
        """SIGCONT."""
        self.did("", f"SIGCONT worker {worker.letter}")
        worker.process.resume()

    async def kill(self, worker: WorkerProcess) -> None:
        """SIGKILL, reaped."""
        await worker.process.killed()
        self.did("", f"SIGKILL worker {worker.letter}")

    async def terminate(self, worker: WorkerProcess) -> int:
        """SIGTERM, and wait for its exit code."""
        self.did("", f"SIGTERM worker {worker.letter}")
        worker.process.send(SIGTERM)
        async with asyncio.timeout(DEADLINE):
            code = await worker.process.child.wait()
        self.did("", f"worker {worker.letter} has ended with {code}")
        return code

    def open(self, *places: str, only: WorkerProcess | None = None) -> None:
        """Let the steps at these places end; with `only`, those of one worker."""
        for place in places:
            suffix = f"-{only.process.pid}" if only else ""
            (self.directory / f"open-{place}{suffix}").touch()
        whose = f" for worker {only.letter}" if only else ""
        self.did("", f"let {', '.join(places)} end{whose}")

    async def cancel(self, run_id: str) -> None:
        """Request cancellation and wait for the acknowledgement."""
        await self.engine.cancel(run_id, reason="the scenario cancels it")
        self.did(run_id, "cancel: acknowledged")

    def did(self, run: str, what: str) -> float:
        """Note what the scenario did, and return when."""
        now = time.time()
        self._done.append(moment("action", now, run, what))
        return now

    def mourn(self, worker: WorkerProcess) -> None:
        """Note, once, that a worker has died by itself."""
        if worker not in self._mourned:
            self._mourned.append(worker)
            self.did("", f"worker {worker.letter} is dead")

    async def breathe(self) -> None:
        """Let a moment pass between two looks."""
        await asyncio.sleep(0.05)

    # What it waits for.

    def calls(self, **match: Any) -> list[dict[str, Any]]:
        """The effects' own notes, in order; `worker=` takes a `WorkerProcess`."""
        if isinstance(worker := match.get("worker"), WorkerProcess):
            match["worker"] = worker.worker_id
        path = self.directory / "calls.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [call for line in lines if match.items() <= (call := json.loads(line)).items()]

    async def until(self, look: Callable[[], T], *, what: str, inv: str = "INV-LIVE") -> T:
        """Wait until `look()` finds something. Raises `NotSeen`: `inv` promised it."""
        end = time.monotonic() + DEADLINE
        while not (found := look()):
            if time.monotonic() > end:
                raise NotSeen(inv, f"not within {DEADLINE:g} s: {what}")
            await asyncio.sleep(0.02)
        return found

    async def until_call(
        self, event: str, *, inv: str = "INV-LIVE", **match: Any
    ) -> dict[str, Any]:
        """Wait for an effect's note, and return the first that fits."""
        what = f"{event} of step {match.get('key', 'any')}"
        return (await self.until(lambda: self.calls(event=event, **match), what=what, inv=inv))[0]

    async def until_state(self, run_id: str, *states: RunState) -> RunState:
        """Wait until the engine says that the run is in one of `states`."""
        end = time.monotonic() + DEADLINE
        while (state := (await self.engine.get(run_id)).state) not in states:
            if time.monotonic() > end:
                raise NotSeen("INV-LIVE", f"after {DEADLINE:g} s the run is still {state}")
            await asyncio.sleep(0.02)
        return state

    async def result(self, run_id: str) -> JsonValue:
        """The run's result, or how it ended, as text."""
        try:
            return await self.engine.result(run_id, timeout=DEADLINE)
        except RunCancelled:
            return "cancelled"
        except RunFailed as error:
            return f"failed: {error.failure}"
        except TimeoutError:
            raise NotSeen("INV-LIVE", f"the run has not ended after {DEADLINE:g} s") from None

    # What it found.

    def letter(self, worker_id: str | None) -> str:
        """The letter of the worker that the engine calls so."""
        return next((w.letter for w in self.workers if w.worker_id == worker_id), "nobody")

    def fact(self, name: str, value: Any) -> None:
        """Something worth knowing about this run of the scenario; anything that JSON can hold."""
        self._facts[name] = value

    def check(self, invariant: str, says: str, holds: bool, found: object) -> None:
        """Something that must hold, whatever the engine."""
        self._checks.append(
            Check(invariant=invariant, says=says, holds=holds, found=self._aliased(str(found)))
        )

    async def side(self) -> Side:
        """Everything, in the order of time."""
        seen = await self.observer.moments(self.began)
        noted = [self._call(call) for call in self.calls()]
        own = [m.model_copy(update={"t": round(m.t - self.began, 3)}) for m in self._done]
        # What we did comes before what came of it within the same millisecond.
        moments = sorted([*own, *seen, *noted, *self._logged()], key=lambda m: m.t)
        side = Side(
            engine=self.engine.name,
            story=self.story,
            settings=self.settings,
            moments=tuple(moments),
            facts=self._facts,
            checks=tuple(self._checks),
        )
        return Side.model_validate_json(self._aliased(side.model_dump_json()))

    def _call(self, call: dict[str, Any]) -> Moment:
        data = {k: call[k] for k in ("fence", "attempt", "worker")}
        return moment(
            "call",
            round(call["t"] - self.began, 3),
            call["run"],
            f"{call['event']} {call['key']}",
            data,
        )

    def _logged(self) -> list[Moment]:
        offset = time.time() - time.monotonic()
        found = []
        for worker in self.workers:
            for line in worker.process.log.read_text().splitlines():
                stamp, _, text = line.partition(" ")
                if any(e == self.engine.name and w in text for e, w in LOGGED):
                    at = round(int(stamp) / 1e9 + offset - self.began, 3)
                    found.append(moment("log", at, "", f"{worker.letter}: {text}"[:300]))
        return found

    def _aliased(self, text: str) -> str:
        for worker in self.workers:
            text = text.replace(worker.worker_id, worker.letter)
        return text


def ids(values: Sequence[dict[str, Any]], name: str) -> list[Any]:
    """One field of several notes."""
    return [value[name] for value in values]
