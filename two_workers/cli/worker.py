"""`two-workers worker`: one worker process, which any harness or supervisor can start."""

from __future__ import annotations

import logging
import os

import click

from two_workers.apps import load_app
from two_workers.cli.options import engine_option
from two_workers.cli.process import run_async, stop_on_signals
from two_workers.engines import engine_plugin, new_worker_id


@click.command()
@engine_option
@click.option(
    "--app",
    "apps",
    multiple=True,
    default=("investigation.app:APP",),
    show_default=True,
    metavar="MODULE:NAME",
    help="An app whose runs this worker takes. Repeat for several.",
)
@click.option(
    "--log-level",
    type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"], case_sensitive=False),
    default="WARNING",
    show_default=True,
    help="What to write to standard error.",
)
def worker(engine: str, apps: tuple[str, ...], log_level: str) -> None:
    """Take runs and carry them out until SIGTERM or Ctrl-C; then finish or hand over, and exit.

    Settings come from the environment, `DATABASE_URL` or `TEMPORAL_ADDRESS` among them.
    """
    logging.basicConfig(
        level=log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    # Says with each try what the engine says once.
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)
    run_async(_work(engine, apps))


async def _work(engine: str, apps: tuple[str, ...]) -> None:
    plugin = engine_plugin(engine)
    loaded = [load_app(path) for path in apps]
    worker_id = new_worker_id()
    working = plugin.worker(plugin.settings(os.environ), loaded, worker_id=worker_id)
    async with plugin.connect(plugin.settings(os.environ)):
        pass  # a server that cannot be reached is said before anybody counts on this worker
    stop = stop_on_signals()
    click.echo(f"worker {worker_id} ready")
    await working.run(stop)


COMMANDS = [worker]
