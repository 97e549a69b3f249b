"""`two-workers faults`: network, server, worker and clock faults, once each on each arm."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from two_workers.cli.options import arms_option, faults_option, results_option
from two_workers.cli.process import run_async


@click.command()
@arms_option("break")
@faults_option
@click.option("--overload", is_flag=True, help="Twice the capacity arrives, instead of a fault.")
@results_option("evidence, ledgers and logs")
def faults(arms: tuple[str, ...], faults: tuple[str, ...], overload: bool, results: Path) -> int:
    """Cut off, reset, deafen, stall, drain and crash: what becomes of the runs?

    The rarer faults, once each: enough to see that an engine survives one, not how often it does.
    Exit code 0 if every run ended as it should, 1 if not, 2 if a fault did not land.
    """
    from comparison.arms import find_arm
    from comparison.breakers.catalogue import find_kind
    from comparison.breakers.main import BY_DEFAULT, bring_all, load_all
    from comparison.patience import expect_outages

    chosen = [find_kind(name) for name in faults] or BY_DEFAULT
    directory = results / "faults" / datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    expect_outages()
    broken = [find_arm(name) for name in arms]
    if overload:
        code = run_async(load_all(broken, directory, click.echo))
    else:
        code = run_async(bring_all(broken, chosen, directory, click.echo))
    click.echo(f"evidence, ledgers and logs: {directory}")
    return code


COMMANDS = [faults]
