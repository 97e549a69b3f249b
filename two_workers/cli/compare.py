"""`two-workers compare`: break real workers on both engines and report. `two-workers check`."""

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
@click.option("--silences", default=2, show_default=True, help="Networks cut for each arm.")
@click.option("--quick", is_flag=True, help="Two kills, a pause, a silence: does it work at all?")
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
    silences: int,
    quick: bool,
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
            silences=silences,
            quick=quick,
            results=results,
        )
    )


@click.command("compare-full")
@click.option("--arm", "arms", multiple=True, help="Only this arm. Repeat for several.")
@click.option("--seed", default=1, show_default=True, help="The same seed, the same experiment.")
@click.option("--blocks", default=6, show_default=True, help="60 faults of each kind in 6.")
@click.option(
    "--results",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("results"),
    show_default=True,
    help="Where reports and raw samples go.",
)
def compare_full(arms: tuple[str, ...], seed: int, blocks: int, results: Path) -> int:
    """Compare all arms with as many faults as a p95 needs. Takes hours.

    Interrupted, it goes on where it was when called again with the same seed and results.
    """
    from comparison.arms import ARMS
    from comparison.main import compare_full as run_all

    return run_async(run_all(arms=list(arms or ARMS), seed=seed, blocks=blocks, results=results))


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
def check(directory: Path) -> int:
    """Judge a finished comparison again from its evidence, without running anything.

    DIRECTORY is one of those under results/compare. The exit code is that of `compare`.
    """
    from comparison.main import check as judge_again

    return judge_again(directory)


@click.command()
@click.argument("before", type=click.Path(path_type=Path, file_okay=False))
@click.argument("after", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--fail-on",
    "limits",
    multiple=True,
    metavar="METRIC:+20%",
    help="Exit with 1 if METRIC rose by more. Repeat for several.",
)
def diff(before: Path, after: Path, limits: tuple[str, ...]) -> int:
    """Say how the figures of two comparisons differ, for a build that must not get worse."""
    from comparison.difference import broken, changes, read_limit

    allowed = [read_limit(limit) for limit in limits]
    found = changes(before, after)
    for change in found:
        click.echo(str(change))
    worse = broken(found, allowed)
    for change in worse:
        click.echo(f"too much: {change.arm} {change.metric}", err=True)
    return 1 if worse else 0


COMMANDS = [compare, compare_full, check, diff]
