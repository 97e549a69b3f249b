"""`python -m comparison.ladder`: one worker process of one form of one rung.

It is told its statements, and so needs to import neither the rungs nor the checks that judge them.
"""

from __future__ import annotations

import os

import click

from comparison.ladder.settings import BEAT, LEASE, POLL
from comparison.ladder.table import FORM_VARIABLE, Form, load_form
from comparison.ladder.worker import LadderWorker
from comparison.story.adapter.settings import StorySettings, open_pool
from two_workers import load_app
from two_workers.cli.process import run_async


@click.command()
@click.option("--owner", required=True, help="The name that it writes into the table.")
@click.option("--schema", required=True, help="Where its tables are.")
def main(owner: str, schema: str) -> None:
    """Claim runs until killed. The database is `DATABASE_URL`, the statements `LADDER_FORM`."""
    run_async(_work(load_form(os.environ[FORM_VARIABLE]), owner, schema))


async def _work(form: Form, owner: str, schema: str) -> None:
    name = f"{schema}.{owner}.{os.getpid()}"
    settings = StorySettings(database_url=os.environ["DATABASE_URL"], concurrency=2)
    async with open_pool(settings, name, schema=schema) as pool:
        worker = LadderWorker(
            form=form,
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
