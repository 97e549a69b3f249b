"""Live progress: a spinner and lines above it on a terminal, plain lines everywhere else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text


class Progress:
    """Says what is going on, with the seconds since the start."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._started = time.monotonic()
        self._status = console.status("starting") if console.is_terminal else None

    @contextmanager
    def live(self) -> Iterator[None]:
        """Show the spinner, if there is a terminal to show it on."""
        if self._status is None:
            yield
        else:
            with self._status:
                yield

    def within(self, part: str) -> Callable[[str], None]:
        """A function that says what is going on in `part`."""

        def say(text: str) -> None:
            self._console.print(
                f"{time.monotonic() - self._started:6.1f} s  {part}: {text}",
                highlight=False,
                markup=False,
                soft_wrap=True,
            )
            if self._status is not None:
                self._status.update(Text(f"{part}: {text}"))

        return say
