"""`two-workers ladder`: take each idea of the story out, and see what breaks and who notices."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from two_workers.cli.options import results_option
from two_workers.cli.process import run_async


@click.command()
@click.option("--rung", "numbers", type=int, multiple=True, help="Only this one. Repeatable.")
@click.option("--trials", type=click.IntRange(min=1), help="Trials of each form, for every rung.")
@results_option("the ledger, the logs and the figures")
def ladder(numbers: tuple[int, ...], trials: int | None, results: Path) -> int:
    """Try every broken form of claim, lease, heartbeat, fence, cancel and limit, and its fix.

    Real workers, a real PostgreSQL (`DATABASE_URL`, or one that is started for it), races that are
    made certain. Exit code 1 if a check misses a broken form or convicts a fixed one.
    """
    from comparison.ladder.main import climb
    from comparison.ladder.rungs import RUNGS, find_rung
    from comparison.ladder.show import lines

    rungs = [find_rung(number) for number in numbers] or list(RUNGS)
    directory = results / "ladder" / datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")

    def say(line: str) -> None:
        click.echo(line, err=True)

    climbed = run_async(climb(rungs, directory, say, trials=trials))
    for line in lines(climbed):
        click.echo(line)
    click.echo(f"figures, ledger and logs: {directory}")
    return int(any(one.defect for one in climbed))


COMMANDS = [ladder]
