"""Options and small helpers that several commands share."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from two_workers.engines import engine_names, engine_plugin
from two_workers.errors import BadInput
from two_workers.protocol import Engine


def _known_engine(context: click.Context, parameter: click.Parameter, value: str) -> str:
    if value not in engine_names():
        raise BadInput(f"unknown engine {value!r}; installed: {', '.join(engine_names())}")
    return value


engine_option: Callable[[Any], Any] = click.option(
    "--engine",
    default="hand_rolled",
    show_default=True,
    envvar="TWO_WORKERS_ENGINE",
    callback=_known_engine,
    help="Which engine owns the runs: hand_rolled or temporal (or TWO_WORKERS_ENGINE).",
)


def names(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """An option's names: repeated, separated by commas, or both."""
    return tuple(name for part in given for name in part.split(",") if name)


ARMS = "story, hand_rolled, hand_rolled+crash, temporal, temporal+tuned, temporal+server"
FAULTS = (
    "kill, kill+cancel, pause, silence, mute, deaf, reset, half-close, cut, sessions, restart, "
    "stall, drain, skew"
)
"""What `--help` says there is: the harness, which knows, takes seconds to load."""


def arms_option(verb: str) -> Callable[[Any], Any]:
    """Arms of the comparison; the matched pair if none is named. `verb`: what is done to them."""
    return click.option(
        "--arm",
        "--arms",
        "arms",
        multiple=True,
        callback=names,
        default=("hand_rolled", "temporal+tuned"),
        show_default=True,
        help=f"Configurations to {verb}, of {ARMS}: repeat, or separate by commas.",
    )


faults_option: Callable[[Any], Any] = click.option(
    "--fault",
    "--faults",
    "faults",
    multiple=True,
    callback=names,
    help=f"Only these faults, of {FAULTS}: repeat, or separate by commas.",
)


class _Folder(click.Path):
    """A folder that has a name: an empty text, as of an unset variable, is not this one."""

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> Any:
        if value == "":
            self.fail("expected the name of a folder, found an empty text", parameter, context)
        return super().convert(value, parameter, context)


def results_option(what: str) -> Callable[[Any], Any]:
    """The folder in which a command leaves `what`."""
    return click.option(
        "--results",
        type=_Folder(path_type=Path, file_okay=False),
        default=Path("results"),
        show_default=True,
        help=f"Where {what} go.",
    )


@asynccontextmanager
async def configured_engine(name: str) -> AsyncIterator[Engine]:
    """A client of a server that the environment names. Raises `BadInput` if it names none."""
    plugin = engine_plugin(name)
    if not plugin.is_configured(os.environ):
        variable = {"hand_rolled": "DATABASE_URL", "temporal": "TEMPORAL_ADDRESS"}.get(name)
        raise BadInput(
            f"no server for engine {name!r}: set {variable or 'what it needs'}, or start one with "
            "`two-workers up` and use the lines it prints"
        )
    async with plugin.connect(plugin.settings(os.environ)) as engine:
        yield engine


def since(moment: datetime | None) -> str:
    """A moment as a person reads it: how long ago, or how soon."""
    if moment is None:
        return "-"
    seconds = (moment - datetime.now(UTC)).total_seconds()
    return f"in {seconds:.1f} s" if seconds >= 0 else f"{-seconds:.0f} s ago"


def console() -> Console:
    """Where tables go. A pipe has no width: nothing is cut, so an id can be passed on."""
    piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(highlight=False, markup=False, width=500 if piped else None)


def plain_table(*columns: str) -> Table:
    """A table without lines. What does not fit is folded, never cut."""
    table = Table(box=None)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
