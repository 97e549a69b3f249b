"""What an operator does to the hand-rolled store: suspend, resume, retry, workers, prune, check.

On Temporal these belong to Temporal's own tools; asked for there, each says which.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from two_workers.cli.options import console, engine_option, plain_table, since
from two_workers.cli.process import run_async
from two_workers.cli.runs import runs
from two_workers.engines import engine_plugin
from two_workers.errors import BadInput

if TYPE_CHECKING:
    from hand_rolled.database import Database

INSTEAD = {
    "suspend": "temporal activity pause, or stop the workers of its task queue",
    "resume": "temporal activity unpause",
    "retry": "temporal workflow reset, or start the same content under a new id",
    "workers": "temporal task-queue describe, or temporal worker list",
    "prune": "the namespace's retention period",
    "reconcile": "nothing: its counters are the server's own",
}


@asynccontextmanager
async def _database(engine: str, command: str) -> AsyncIterator[Database]:
    if engine != "hand_rolled":
        raise BadInput(f"engine {engine!r} has no {command}; its own tools: {INSTEAD[command]}")
    from hand_rolled import engine as hand_rolled

    plugin = engine_plugin(engine)
    async with hand_rolled.connect(plugin.settings(os.environ)) as client:
        yield client.database


@runs.command()
@engine_option
@click.argument("run_id")
def suspend(engine: str, run_id: str) -> None:
    """Take a run out: at once, or at its owner's next safe boundary."""

    async def suspended() -> str:
        from hand_rolled import operations

        async with _database(engine, "suspend") as database:
            return (await operations.suspend(database, run_id)).state

    click.echo(f"{run_id}: {run_async(suspended())}")


@runs.command()
@engine_option
@click.argument("run_id")
def resume(engine: str, run_id: str) -> None:
    """Put a suspended run back into the queue."""

    async def resumed() -> str:
        from hand_rolled import operations

        async with _database(engine, "resume") as database:
            return (await operations.resume(database, run_id)).state

    click.echo(f"{run_id}: {run_async(resumed())}")


@runs.command()
@engine_option
@click.argument("run_id")
@click.option("--as", "new_run_id", help="The new run's id. Default: the old one with a suffix.")
def retry(engine: str, run_id: str, new_run_id: str | None) -> None:
    """Start the content of a failed or cancelled run again, as a new run."""

    async def redriven() -> str:
        from hand_rolled import operations

        async with _database(engine, "retry") as database:
            return (await operations.redrive(database, run_id, new_run_id=new_run_id)).run_id

    click.echo(f"{run_id} starts again as {run_async(redriven())}")


@click.group()
def workers() -> None:
    """The workers that the store knows."""


@workers.command("list")
@engine_option
@click.option("--all", "everyone", is_flag=True, help="Also those that stopped or died.")
def list_workers(engine: str, everyone: bool) -> None:
    """Who is at work, with how many runs, and which ready runs nobody serves."""

    async def listed() -> None:
        from hand_rolled import operations

        async with _database(engine, "workers") as database:
            found = await operations.list_workers(database, everyone=everyone)
            ready = await operations.list_ready(database)
        table = plain_table("worker", "state", "runs", "kinds", "last heartbeat")
        for one in found:
            load = f"{one.runs} of {one.concurrency}"
            table.add_row(
                one.worker_id, one.state, load, ", ".join(one.kinds), since(one.heartbeat_at)
            )
        console().print(table if found else "no workers")
        for kind in ready:
            nobody = "" if kind.served else "; no live worker takes this kind"
            click.echo(f"{kind.runs} ready of kind {kind.kind}, since {since(kind.oldest)}{nobody}")

    run_async(listed())


@click.command()
@engine_option
@click.option("--older-than", required=True, help="As in 30d, 12h, 90m or 45s.")
def prune(engine: str, older_than: str) -> None:
    """Delete runs that ended longer ago, with everything about them."""
    found = re.fullmatch(r"(\d+)([dhms])", older_than)
    if found is None:
        raise BadInput(
            f"--older-than {older_than!r}: expected a number and a unit, as in 30d or 12h"
        )
    units = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
    age = timedelta(**{units[found[2]]: int(found[1])})

    async def pruned() -> int:
        from hand_rolled import operations

        async with _database(engine, "prune") as database:
            return await operations.prune(database, older_than=age)

    click.echo(f"deleted {run_async(pruned())} runs")


@click.command()
@engine_option
def reconcile(engine: str) -> int:
    """Recount slots and reservations; repair and report what does not match. Exit code 1 if so."""

    async def recounted() -> int:
        from hand_rolled import operations

        async with _database(engine, "reconcile") as database:
            drifts = await operations.reconcile(database)
        for drift in drifts:
            click.echo(f"{drift.what}: counted {drift.counted}, found {drift.found}; repaired")
        if not drifts:
            click.echo("every counter matches what it counts")
        return 1 if drifts else 0

    return run_async(recounted())


COMMANDS = [workers, prune, reconcile]
