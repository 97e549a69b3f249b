"""`two-workers up`: servers to work against, without Docker. `two-workers migrate`."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from pathlib import Path

import click

from two_workers.cli.options import engine_option
from two_workers.cli.process import run_async, stop_on_signals
from two_workers.engines import engine_names, engine_plugin
from two_workers.errors import BadInput


@click.command()
@click.option(
    "--engine", "engines", multiple=True, help="Only this engine's server. Repeat for several."
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".two-workers"),
    show_default=True,
    help="Where the servers keep their data between starts.",
)
def up(engines: tuple[str, ...], data: Path) -> None:
    """Start the engines' servers, print how to reach them, and stop them on Ctrl-C."""
    run_async(_up(engines or tuple(engine_names()), data))


async def _up(engines: tuple[str, ...], data: Path) -> None:
    async with AsyncExitStack() as stack:
        for name in engines:
            plugin = engine_plugin(name)
            click.echo(f"starting the server of {name} ...", err=True)
            directory = (data / name).absolute()
            directory.mkdir(parents=True, exist_ok=True)
            found = await stack.enter_async_context(plugin.embedded(directory, os.environ))
            await plugin.prepare(plugin.settings({**os.environ, **found}))
            for key, value in found.items():
                click.echo(f"export {key}='{value}'")
        click.echo("ready; Ctrl-C stops the servers, their data stay", err=True)
        await stop_on_signals().wait()
        await asyncio.sleep(0)


@click.command()
@engine_option
def migrate(engine: str) -> None:
    """Create or update what the engine keeps on its server. Safe to repeat."""
    plugin = engine_plugin(engine)
    if not plugin.is_configured(os.environ):
        raise BadInput(f"nothing to migrate: no server is configured for engine {engine!r}")
    run_async(plugin.prepare(plugin.settings(os.environ)))
    click.echo(f"{engine}: up to date")


COMMANDS = [up, migrate]
