"""`two-workers sweep`: the same engines under several leases."""

from __future__ import annotations

from pathlib import Path

import click

from two_workers.cli.options import arms_option, results_option
from two_workers.cli.process import run_async


def _seconds(context: click.Context, parameter: click.Parameter, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise click.BadParameter(f"{text!r}: expected seconds, as in 1,2,5") from None


@click.command()
@click.option(
    "--lease",
    "leases",
    default="1,2,5,10,30",
    show_default=True,
    callback=_seconds,
    help="Seconds, separated by commas. Heartbeats come four times as often.",
)
@arms_option("measure")
@click.option(
    "--rounds",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="2 kills, stops and stalls in each.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="The same seed, the same faults.",
)
@results_option("the table, the plot and the raw samples")
def sweep(
    leases: list[float], arms: tuple[str, ...], rounds: int, seed: int, results: Path
) -> None:
    """What does a longer lease buy, and what does it cost? On both engines, over one axis.

    For each lease: how long a dead worker goes unnoticed, how often a slow one loses its work,
    and what heartbeats write. --lease 1,2 takes about three minutes, the default a quarter hour.
    """
    from comparison.sweep.main import sweep as run_sweep

    run_async(run_sweep(arms=list(arms), leases=leases, rounds=rounds, seed=seed, results=results))


COMMANDS = [sweep]
