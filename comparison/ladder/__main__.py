"""`python -m comparison.ladder`: one worker process of one form of one rung."""

from __future__ import annotations

import os

import click

from comparison.ladder.rungs import find_rung
from comparison.ladder.settings import BEAT, LEASE, POLL
from comparison.ladder.worker import LadderWorker
from comparison.story.settings import StorySettings, open_pool
from two_workers import load_app
from two_workers.cli.process import run_async


@click.command()
@click.option("--rung", type=int, required=True)
@click.option("--form", type=click.Choice(["broken", "fixed"]), required=True)
@click.option("--owner", required=True, help="The name that it writes into the table.")
@click.option("--schema", required=True, help="Where its tables are.")
def main(rung: int, form: str, owner: str, schema: str) -> None:
    """Claim runs until killed. The database is `DATABASE_URL`."""
    run_async(_work(rung, form, owner, schema))


async def _work(rung: int, form: str, owner: str, schema: str) -> None:
    found, name = find_rung(rung), f"{schema}.{owner}.{os.getpid()}"
    settings = StorySettings(database_url=os.environ["DATABASE_URL"], concurrency=2)
    async with open_pool(settings, name, schema=schema) as pool:
        worker = LadderWorker(
            form=found.broken if form == "broken" else found.fixed,
            app=load_app("investigation.app:APP"),
            pool=pool,
            worker=name,
            owner=owner,
            engine=schema,
            lease=LEASE,
            beat_every=BEAT,
            poll=POLL,
        )
        click.echo(f"worker {name} ready")
        await worker.run()


main()
