"""Demo mode: real worker processes that a person may kill or pause, to watch who resumes the work.

The workers are started here, each in a session of its own, and only they can be touched: a worker
is named by the id that it printed, never by a process number from outside. SIGKILL is a crash;
SIGSTOP is a pause, after which SIGCONT makes a zombie that still believes in its lease.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

from fastapi import HTTPException
from pydantic import BaseModel

READY = re.compile(r"worker (\S+) ready")
LOG_PREFIX = re.compile(r"^\S+ (\d\d:\d\d:\d\d),\d+ [A-Z]+ [\w.]+: ")  # keep the time only
STARTUP = 60.0  # seconds that a worker may take to say that it is ready
GRACE = 8.0  # seconds between SIGTERM and SIGKILL at the end
MOST_WORKERS = 8  # at a time; a demo on one machine


class WorkerView(BaseModel):
    """One worker process, as the demo sees it. `output` is the end of what it printed."""

    worker_id: str
    pid: int
    status: Literal["running", "paused", "ended"]
    output: list[str]


@dataclass(eq=False)
class DemoWorker:
    """A process that this demo started, and the name that it gave itself."""

    process: asyncio.subprocess.Process
    worker_id: str = ""
    paused: bool = False
    output: deque[str] = field(default_factory=lambda: deque(maxlen=12))
    ready: asyncio.Event = field(default_factory=asyncio.Event)

    def send(self, number: signal.Signals) -> None:
        """Send a signal, unless the process has ended: its number may be another's by now."""
        if self.process.returncode is None:
            os.kill(self.process.pid, number)

    def view(self) -> WorkerView:
        ended = self.process.returncode is not None
        status: Literal["running", "paused", "ended"] = "paused" if self.paused else "running"
        return WorkerView(
            worker_id=self.worker_id,
            pid=self.process.pid,
            status="ended" if ended else status,
            output=list(self.output),
        )

    async def listen(self) -> None:
        """Read what the worker prints, until it ends."""
        assert self.process.stdout is not None
        async for raw in self.process.stdout:
            line = raw.decode(errors="replace").rstrip()
            self.output.append(LOG_PREFIX.sub(r"\1 ", line))
            if found := READY.search(line):
                self.worker_id = found[1]
                self.ready.set()
        await self.process.wait()
        self.ready.set()


class Demo:
    """The demo's workers. Use `demo_workers`."""

    def __init__(self, command: list[str], env: Mapping[str, str], tasks: asyncio.TaskGroup):
        self._command = command
        self._env = dict(env)
        self._tasks = tasks
        self._workers: list[DemoWorker] = []

    @property
    def workers(self) -> list[DemoWorker]:
        """All workers that were started, the ended ones too."""
        return list(self._workers)

    def worker(self, worker_id: str) -> DemoWorker:
        """A worker that runs or is paused. Raises 404, or 409 if it has ended."""
        for worker in self._workers:
            if worker.worker_id == worker_id:
                if worker.process.returncode is not None:
                    raise HTTPException(409, f"worker {worker_id} has already ended")
                return worker
        raise HTTPException(404, f"no worker {worker_id!r} was started by this service")

    async def start(self) -> DemoWorker:
        """Start a worker and wait until it is ready. Raises 429, or 503 if it ends first."""
        if sum(w.process.returncode is None for w in self._workers) >= MOST_WORKERS:
            raise HTTPException(429, f"{MOST_WORKERS} workers run, which is the most of a demo")
        worker = DemoWorker(
            await asyncio.create_subprocess_exec(
                *self._command,
                env={**self._env, "PYTHONUNBUFFERED": "1"},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
        )
        self._workers.append(worker)
        self._tasks.create_task(worker.listen())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STARTUP):
                await worker.ready.wait()
        if not worker.worker_id:
            worker.send(signal.SIGKILL)
            raise HTTPException(503, f"the worker did not start: {' '.join(worker.output)}")
        return worker

    async def close(self) -> None:
        """Ask all workers to stop, and insist after a while."""
        for worker in self._workers:
            worker.send(signal.SIGCONT)
            worker.send(signal.SIGTERM)
        waiting = asyncio.gather(*(worker.process.wait() for worker in self._workers))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(waiting, GRACE)
        self.kill_all()

    def kill_all(self) -> None:
        for worker in self._workers:
            worker.send(signal.SIGKILL)


@asynccontextmanager
async def demo_workers(
    engine: str, app: str, env: Mapping[str, str], *, count: int, pace: float
) -> AsyncIterator[Demo]:
    """Start `count` workers; leave none behind, however the block is left.

    `pace`: seconds that every step takes longer.
    """
    command = [sys.executable, "-m", "two_workers.cli", "worker", "--engine", engine]
    command += ["--app", "investigation.service.paced:APP", "--log-level", "INFO"]
    env = {**env, "DEMO_APP": app, "DEMO_PACE": str(pace)}
    async with asyncio.TaskGroup() as tasks:
        demo = Demo(command, env, tasks)
        try:
            for _ in range(count):
                await demo.start()
            yield demo
            await demo.close()
        finally:
            demo.kill_all()
