"""`two-workers compare`: break real workers on both engines and report. `two-workers check`."""

from __future__ import annotations

from pathlib import Path

import click

from two_workers.cli.options import ARMS, arms_option, faults_option, names, results_option
from two_workers.cli.process import run_async

_RESULTS = results_option("reports and raw samples")
_SEED = click.option(
    "--seed",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="The same seed, the same experiment.",
)


@click.command()
@arms_option("measure")
@_SEED
@click.option(
    "--workers",
    type=click.IntRange(2),
    default=3,
    show_default=True,
    help="Worker processes at a time.",
)
@click.option(
    "--investigations",
    type=click.IntRange(1),
    default=12,
    show_default=True,
    help="Runs for each arm.",
)
@click.option(
    "--kills", type=click.IntRange(0), default=6, show_default=True, help="SIGKILLs for each arm."
)
@click.option(
    "--pauses", type=click.IntRange(0), default=2, show_default=True, help="SIGSTOPs for each arm."
)
@click.option(
    "--silences",
    type=click.IntRange(0),
    default=2,
    show_default=True,
    help="Networks silenced for each arm.",
)
@click.option(
    "--cuts",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="Cuts after a record, before its reply.",
)
@click.option(
    "--stalls",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="Event loops standing still.",
)
@click.option("--quick", is_flag=True, help="Two kills, a pause, a silence: does it work at all?")
@_RESULTS
def compare(
    arms: tuple[str, ...],
    seed: int,
    workers: int,
    investigations: int,
    kills: int,
    pauses: int,
    silences: int,
    cuts: int,
    stalls: int,
    quick: bool,
    results: Path,
) -> int:
    """Kill, pause and cancel real workers on both engines; print what each answer cost.

    One of the kills also has its orphan cancelled. Exit code 0 only if every verdict passes, 1 if
    one fails, 2 if one is unknown.
    """
    from comparison.main import compare as run_comparison

    if quick:
        kills, pauses, silences = min(kills, 2), min(pauses, 1), min(silences, 1)
        cuts = stalls = 0
    cancelled = min(kills, 1)
    return run_async(
        run_comparison(
            arms=list(arms),
            seed=seed,
            workers=workers,
            investigations=investigations,
            faults={
                "kill": kills - cancelled,
                "kill+cancel": cancelled,
                "pause": pauses,
                "silence": silences,
                "cut": cuts,
                "stall": stalls,
            },
            results=results,
        )
    )


@click.command("compare-full")
@click.option(
    "--arm",
    "--arms",
    "arms",
    multiple=True,
    callback=names,
    help=f"Only these arms, of {ARMS}: repeat, or separate by commas.",
)
@faults_option
@click.option(
    "--samples",
    type=click.IntRange(1),
    default=60,
    show_default=True,
    help="Faults in each cell (a fault at a crash point) of each arm; a p95 needs 59.",
)
@click.option(
    "--others",
    type=click.IntRange(1),
    help="Fewer for the cells behind no headline: --others 6 takes about a quarter of the time.",
)
@click.option(
    "--blocks",
    type=click.IntRange(1),
    default=24,
    show_default=True,
    help="Campaigns for each arm.",
)
@_SEED
@_RESULTS
def compare_full(
    arms: tuple[str, ...],
    faults: tuple[str, ...],
    samples: int,
    others: int | None,
    blocks: int,
    seed: int,
    results: Path,
) -> int:
    """Compare all arms under every fault at every crash point. Says how many hours it takes.

    Interrupted, it goes on where it was when called again with the same seed and results.
    """
    from comparison.arms import ARMS
    from comparison.kinds import KINDS
    from comparison.main import compare_full as run_all

    return run_async(
        run_all(
            arms=list(arms or ARMS),
            faults=list(faults or KINDS),
            samples=samples,
            others=others,
            blocks=blocks,
            seed=seed,
            results=results,
        )
    )


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
def check(directory: Path) -> int:
    """Judge a finished comparison again from its evidence, without running anything.

    DIRECTORY is one of those under results/compare. Its evidence is only read: config.json,
    environment.json, every evidence.json, ledger.jsonl and overload.json. All that follows from it
    is written anew, over what is there: history.jsonl, faults.jsonl, results.json, report.html,
    summary.md, summary.csv and junit.xml. What the earlier ones said otherwise, and which commit
    judged, is printed. The exit code is that of `compare`, or 2 if the evidence is damaged; then
    nothing is written.
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
    help="Exit with 1 if METRIC rose by more, with 2 if a side lacks it. Repeat for several.",
)
def diff(before: Path, after: Path, limits: tuple[str, ...]) -> int:
    """Say how the figures of two comparisons differ, for a build that must not get worse.

    Exit code 1 if a metric rose beyond its limit or a verdict of AFTER failed, 2 if a limit cannot
    be decided from the two, else 0.
    """
    from comparison.difference import difference, read_limit

    allowed = [read_limit(limit) for limit in limits]
    found = difference(before, after)
    if found.experiments:
        click.echo("Not the same experiment; the figures are only as alike as these:")
    for line in found.experiments:
        click.echo(f"  {line}")
    for change in found.changes:
        click.echo(str(change))
    worse, open_ = found.broken(allowed), found.unknown(allowed)
    for line in worse:
        click.echo(f"FAIL: {line}", err=True)
    for line in open_:
        click.echo(f"unknown: {line}", err=True)
    return 1 if worse else 2 if open_ else 0


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
@_RESULTS
def replay(directory: Path, results: Path) -> int:
    """Carry out the experiment of a stored comparison again, and say what differs from it.

    DIRECTORY is one of those under results/compare: its seed, arms, settings, questions, faults
    and phases are used again. The schedule is not repeated: processes and servers keep their own
    timing. The exit code is that of `compare`.
    """
    from comparison.replay import replay as carry_out_again

    return run_async(carry_out_again(directory, results=results))


COMMANDS = [compare, compare_full, check, diff, replay]
