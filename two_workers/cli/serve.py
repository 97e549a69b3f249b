"""`two-workers serve`: the HTTP service and its web page, on either engine."""

from __future__ import annotations

import logging
import os

import click

from two_workers.cli.options import engine_option
from two_workers.cli.process import run_async, stop_on_signals
from two_workers.errors import BadInput


@click.command()
@engine_option
@click.option(
    "--app",
    default="investigation.app:APP",
    show_default=True,
    metavar="MODULE:NAME",
    help="The app to serve.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Another one needs API keys.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(0, 65535))
@click.option("--demo", is_flag=True, help="Start workers too, to kill and pause from the page.")
@click.option(
    "--workers",
    default=3,
    show_default=True,
    type=click.IntRange(1, 8),
    help="How many, with --demo.",
)
@click.option(
    "--pace",
    default=1.5,
    show_default=True,
    type=click.FloatRange(0, 60),
    help="Seconds that each step takes longer, with --demo: time to watch and to interfere.",
)
@click.option("--log-level", default="WARNING", show_default=True, help="DEBUG to ERROR.")
def serve(
    engine: str,
    app: str,
    host: str,
    port: int,
    demo: bool,
    workers: int,
    pace: float,
    log_level: str,
) -> None:
    """Serve an app over HTTP, with a web page, until SIGTERM or Ctrl-C.

    With --demo it needs nothing else: it starts the engine's own server if none is configured, and
    real worker processes. Callers, limits and sizes are set by SERVICE_* variables.
    """
    try:
        from investigation.service import serving
        from investigation.service.access import Redactor, secrets_in
    except ModuleNotFoundError as error:
        raise BadInput(f"serve needs {error.name}: pip install 'two-workers[app]'") from error

    redactor = Redactor(secrets_in(os.environ))
    _log(log_level, redactor)
    wanted = serving.Serving(
        engine=engine, app=app, host=host, port=port, workers=workers if demo else 0, pace=pace
    )

    async def served() -> None:
        stop = stop_on_signals()
        await serving.serve(
            wanted,
            os.environ,
            redactor,
            stop=stop,
            ready=lambda address: click.echo(f"serving on {address}"),
        )

    run_async(served())


def _log(level: str, redactor: logging.Filter) -> None:
    """Log to standard error, without secrets."""
    handler = logging.StreamHandler()
    handler.addFilter(redactor)
    form = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    logging.basicConfig(level=level.upper(), format=form, handlers=[handler])


COMMANDS = [serve]
