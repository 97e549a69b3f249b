"""`python -m comparison.story worker`: a worker process of the arm, as a harness starts it."""

from __future__ import annotations

import os

import click

from comparison.story.adapter.plugin import PLUGIN
from two_workers import load_app
from two_workers.cli.process import run_async, stop_on_signals
from two_workers.engines import new_worker_id


@click.group()
def main() -> None:
    """The arm `story`."""


@main.command()
@click.option("--app", "apps", multiple=True, default=("investigation.app:APP",))
def worker(apps: tuple[str, ...]) -> None:
    """Claim runs and carry them out until SIGTERM; settings come from the environment."""
    run_async(_work(apps))


async def _work(apps: tuple[str, ...]) -> None:
    settings, worker_id = PLUGIN.settings(os.environ), new_worker_id()
    working = PLUGIN.worker(settings, [load_app(path) for path in apps], worker_id=worker_id)
    stop = stop_on_signals()
    click.echo(f"worker {worker_id} ready")
    await working.run(stop)


main()
