"""`two-workers compare`: break real workers on both engines and report."""

from __future__ import annotations

from pathlib import Path

import click

from two_workers.cli.process import run_async


@click.command()
@click.option(
    "--arm",
    "arms",
    multiple=True,
    default=("hand_rolled", "temporal+tuned"),
    show_default=True,
    help="A configuration to measure. Repeat for several.",
)
@click.option("--seed", default=1, show_default=True, help="The same seed, the same experiment.")
@click.option("--workers", default=3, show_default=True, help="Worker processes at a time.")
@click.option("--investigations", default=12, show_default=True, help="Runs for each arm.")
@click.option("--kills", default=8, show_default=True, help="SIGKILLs for each arm.")
@click.option("--pauses", default=4, show_default=True, help="SIGSTOPs for each arm.")
@click.option(
    "--results",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("results"),
    show_default=True,
    help="Where reports and raw samples go.",
)
def compare(
    arms: tuple[str, ...],
    seed: int,
    workers: int,
    investigations: int,
    kills: int,
    pauses: int,
    results: Path,
) -> int:
    """Kill, pause and cancel real workers on both engines; print what each answer cost.

    Exit code 0 only if every verdict passes, 1 if one fails, 2 if one is unknown.
    """
    from comparison.main import compare as run_comparison

    return run_async(
        run_comparison(
            arms=list(arms),
            seed=seed,
            workers=workers,
            investigations=investigations,
            kills=kills,
            pauses=pauses,
            results=results,
        )
    )


COMMANDS = [compare]
