"""Run `two-workers` as a person does: a process of its own, found again by a mark it inherits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

MARK = "TWO_WORKERS_TEST_MARK"


def clean_environment(**extra: str) -> dict[str, str]:
    """The environment without any server or setting of ours."""
    ours = ("DATABASE_URL", "TEMPORAL_", "HAND_ROLLED_", "INVESTIGATION_", "TWO_WORKERS_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**kept, "COLUMNS": "120", **extra}


def two_workers(*arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "two_workers.cli", *arguments],
        env=clean_environment(**extra),
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


class Started:
    """A command that still runs, and every process that it started."""

    def __init__(self, *arguments: str, output: Path, **extra: str) -> None:
        self.mark = uuid.uuid4().hex
        self.output = output
        self._file = output.open("w")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "two_workers.cli", *arguments],
            env=clean_environment(**{MARK: self.mark}, **extra),
            stdout=self._file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def text(self) -> str:
        return self.output.read_text()

    def family(self) -> list[psutil.Process]:
        """Every live process that carries the mark: servers, workers, grandchildren."""
        return [process for process in psutil.process_iter() if _mark_of(process) == self.mark]

    def until(self, true: Callable[[], bool], *, what: str, deadline: float = 90) -> None:
        """Wait for a condition while the command runs."""
        end = time.monotonic() + deadline
        while not true():
            assert self.process.poll() is None, f"ended before {what}:\n{self.text()}"
            assert time.monotonic() < end, f"not {what} in {deadline} s:\n{self.text()}"
            time.sleep(0.05)

    def interrupt(self, *, group: bool) -> int:
        """Ctrl-C: SIGINT to the whole foreground group, as a terminal does, or to the command."""
        if group:
            os.killpg(self.process.pid, signal.SIGINT)
        else:
            self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=60)

    def close(self) -> None:
        for process in self.family():
            process.kill()
        self.process.wait()
        self._file.close()


def _mark_of(process: psutil.Process) -> str | None:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        mark: str | None = process.environ().get(MARK)
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return None
    return mark


@contextmanager
def started(*arguments: str, output: Path, **extra: str) -> Iterator[Started]:
    command = Started(*arguments, output=output, **extra)
    try:
        yield command
    finally:
        command.close()
