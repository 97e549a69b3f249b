"""How a command behaves as a process: its event loop, its signals, its one-line errors."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Coroutine
from typing import Any, NoReturn, TypeVar

import click

T = TypeVar("T")


def fail(message: str, code: int) -> NoReturn:
    """Print one line to standard error and exit."""
    click.echo(f"two-workers: {' '.join(message.split())}", err=True)
    sys.exit(code)


def run_async(main: Coroutine[Any, Any, T]) -> T:
    """Run a command's coroutine. SIGTERM ends it like Ctrl-C: every server and worker is stopped.

    Raises `KeyboardInterrupt` when either signal ended it.
    """

    async def guarded() -> T:
        task = asyncio.ensure_future(main)
        loop = asyncio.get_running_loop()
        interrupted = False

        def interrupt() -> None:
            nonlocal interrupted
            interrupted = True
            task.cancel()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, interrupt)
        try:
            return await task
        except asyncio.CancelledError:
            if interrupted:
                raise KeyboardInterrupt from None
            raise
        except BaseExceptionGroup as group:
            raise _first_of(group) from None

    return asyncio.run(guarded())


def _first_of(error: BaseException) -> BaseException:
    """The error that a task group wraps; its siblings were cancelled because of it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def stop_on_signals() -> asyncio.Event:
    """An event that SIGTERM and SIGINT set: the orderly stop of a worker."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop
