"""Processes: started in sessions of their own, killed by pidfd, and never left behind.

Every process of a comparison (workers and the world) is started here. Each leads its own session,
so a Ctrl-C at the terminal reaches the harness alone and a worker's own children die with it. On
leaving the block, however it is left, every process is gone; and a harness that is killed, which
leaves no block, takes its processes with it too.

A process's output goes to a log file, each line stamped with CLOCK_MONOTONIC: the worker's own
words, on the ledger's clock.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

READY = 60.0  # seconds that a process may take to say that it is ready
GRACE = 8.0  # seconds between SIGTERM and SIGKILL at the end


@dataclass(eq=False)
class Process:
    """One process that the harness started, and what it said when it was ready."""

    name: str
    log: Path
    child: asyncio.subprocess.Process
    ready: asyncio.Future[str]
    pidfd: int | None = None
    heir: subprocess.Popen[bytes] | None = None
    pump: asyncio.Task[None] | None = field(default=None, repr=False)
    swept: bool = False

    @property
    def pid(self) -> int:
        return self.child.pid

    @property
    def is_running(self) -> bool:
        return self.child.returncode is None

    def send(self, number: signal.Signals) -> None:
        """Send a signal to this process and to no other that may have got its number since."""
        if not self.is_running:
            return
        with contextlib.suppress(ProcessLookupError):  # it ended just now; asyncio will say so
            if self.pidfd is not None:
                signal.pidfd_send_signal(self.pidfd, number)
            else:
                os.kill(self.pid, number)  # not reaped yet, so the number is still its own

    async def killed(self) -> None:
        """SIGKILL the process and its session; return once the kernel has reaped it.

        The session too, before waiting: a child that holds the output open would be waited for.
        """
        self.send(signal.SIGKILL)
        self.sweep()
        await self.child.wait()

    async def stopped(self) -> None:
        """SIGSTOP the process; return once the kernel says that it is stopped."""
        self.send(signal.SIGSTOP)
        while not _is_stopped(self.pid):
            await asyncio.sleep(0.001)  # the kernel offers no event for this but SIGCHLD

    def resume(self) -> None:
        """SIGCONT."""
        self.send(signal.SIGCONT)

    def sweep(self) -> None:
        """Kill what is left of the process's session. Synchronous: works while being cancelled."""
        if not self.swept:
            self.swept = True
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            if self.heir is not None:
                self.heir.kill()
                self.heir.communicate()


def _is_stopped(pid: int) -> bool:
    """True once the kernel has stopped a child of ours, or reaped it."""
    if not hasattr(os, "waitid"):  # macOS before Python 3.13
        ps = ["ps", "-o", "stat=", "-p", str(pid)]
        state = subprocess.run(ps, capture_output=True, text=True, check=False).stdout.strip()
        return not state or state.startswith("T")
    options = os.WSTOPPED | os.WEXITED | os.WNOHANG | os.WNOWAIT
    try:
        found = os.waitid(os.P_PID, pid, options)
    except ChildProcessError:
        return True  # reaped: it will not run again either
    return found is not None


def _kill_when_we_are_gone(session: int) -> subprocess.Popen[bytes]:
    """A process that waits for the end of a pipe which only we hold open, then kills the session.

    A harness that is killed cleans up nothing; the kernel closes its pipes all the same.
    """
    return subprocess.Popen(
        ["/bin/sh", "-c", 'read -r _; kill -s KILL -- "-$1"', "sh", str(session)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


class Cluster:
    """The processes of one comparison. Use `Cluster.open`."""

    def __init__(self, logs: Path) -> None:
        logs.mkdir(parents=True, exist_ok=True)
        self._logs = logs
        self._processes: list[Process] = []
        self._closed = False

    @classmethod
    @asynccontextmanager
    async def open(cls, logs: Path) -> AsyncIterator[Cluster]:
        """A cluster that writes its logs under `logs` and leaves no process behind."""
        cluster = cls(logs)
        atexit.register(cluster._sweep)
        try:
            yield cluster
            await cluster.stop(cluster.running)
        finally:
            cluster._closed = True
            cluster._sweep()
            atexit.unregister(cluster._sweep)
            await cluster._forget()

    @property
    def running(self) -> list[Process]:
        """The processes that have not ended."""
        return [process for process in self._processes if process.is_running]

    async def start(
        self, name: str, command: Sequence[str], env: Mapping[str, str], *, ready: str
    ) -> Process:
        """Start a process and wait until it prints a line that matches the pattern `ready`.

        The pattern's first group is kept as `process.ready`. Raises `RuntimeError` with the end of
        its log if it ends first, or says nothing for a minute.
        """
        child = await asyncio.create_subprocess_exec(
            *command,
            env={**os.environ, **env, "PYTHONUNBUFFERED": "1"},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            limit=1 << 20,  # a traceback in one line of JSON is still a line
        )
        process = Process(
            name=name,
            log=self._logs / f"{name}.log",
            child=child,
            ready=asyncio.get_running_loop().create_future(),
            pidfd=os.pidfd_open(child.pid) if sys.platform == "linux" else None,
            heir=_kill_when_we_are_gone(child.pid),
        )
        self._processes.append(process)
        if self._closed:  # it was being started while everything else was being ended
            process.sweep()
        process.pump = asyncio.create_task(_pump(process, re.compile(ready)))
        try:
            async with asyncio.timeout(READY):
                await asyncio.shield(process.ready)
        except TimeoutError:
            raise RuntimeError(
                f"{name} was not ready after {READY:g} s:\n{_tail(process)}"
            ) from None
        return process

    async def stop(self, processes: Iterable[Process]) -> None:
        """Ask processes to stop, and wait for their orderly end for a while; no force is used."""
        asked = [process for process in processes if process.is_running]
        for process in asked:
            process.resume()
            process.send(signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                await asyncio.gather(*(process.child.wait() for process in asked))

    def _sweep(self) -> None:
        for process in self._processes:
            process.sweep()

    async def _forget(self) -> None:
        await asyncio.gather(*(process.child.wait() for process in self._processes))
        await asyncio.gather(*(p.pump for p in self._processes if p.pump is not None))
        for process in self._processes:
            if process.pidfd is not None:
                os.close(process.pidfd)


async def _pump(process: Process, ready: re.Pattern[str]) -> None:
    assert process.child.stdout is not None
    with process.log.open("a") as log:
        async for raw in process.child.stdout:
            line = raw.decode(errors="replace")
            log.write(f"{time.monotonic_ns()} {line}")
            log.flush()
            found = ready.search(line)
            if found and not process.ready.done():
                process.ready.set_result(found[1])
    await process.child.wait()
    process.sweep()
    if not process.ready.done():
        process.ready.set_exception(
            RuntimeError(f"{process.name} ended before it was ready:\n{_tail(process)}")
        )
        process.ready.exception()  # asked for: after a Ctrl-C nobody waits for it any more


def _tail(process: Process) -> str:
    lines = process.log.read_text().splitlines()[-15:]
    return "\n".join(line.partition(" ")[2] for line in lines)
