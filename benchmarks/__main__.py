"""`python -m benchmarks`: measure, print the table, write JSON, plots and the README's section."""

from __future__ import annotations

import asyncio
import os
import platform
import sys
import tempfile
import time
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click
from rich.console import Console

from benchmarks.bench import Bench
from benchmarks.databases import benchmark_server
from benchmarks.peers import PEERS, Peer, load_peer
from benchmarks.plots import draw_growth, draw_rates
from benchmarks.report import growth, performance, print_table, write_json, write_section
from benchmarks.results import Report
from benchmarks.rows import NOT_QUICK, ROWS
from two_workers import BadInput, EngineUnavailable
from two_workers.cli.process import run_async

README = Path(__file__).parent.parent / "README.md"
PATIENCE = 900.0  # seconds for one row
LIMITS = README.parent / "benchmarks" / "LIMITS.md"


@click.command()
@click.option(
    "--quick",
    is_flag=True,
    help="Smaller counts, fewer contenders, three rounds: under two minutes.",
)
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(list(ROWS)),
    help="Measure only these rows; repeat for several.",
)
@click.option(
    "--absurd-sql",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Another schema file of Absurd than the one that its tool brings.",
)
@click.option("--output", type=click.Path(file_okay=False, path_type=Path), default="results/bench")
def main(quick: bool, only: tuple[str, ...], absurd_sql: Path | None, output: Path) -> None:
    """Measure this project beside its Python peers and beside PostgreSQL itself.

    Without --quick the figures in benchmarks/LIMITS.md are rewritten, and without --only those in
    README.md too. Exit code 1 if a row could not be measured.
    """
    try:
        rows = only or tuple(row for row in ROWS if not quick or row not in NOT_QUICK)
        report = run_async(_measure(quick, rows, absurd_sql))
    except (BadInput, EngineUnavailable) as error:
        click.echo(str(error), err=True)
        sys.exit(2)
    folder = output / report.utc.replace(":", "")
    write_json(report, folder / "bench.json")
    draw_rates(report, folder / "rates.png")
    draw_growth(report, folder / "growth.png")
    print_table(report, Console())
    click.echo(f"written: {folder}")
    if not quick and report.growth:
        write_section(LIMITS, growth(report))
        draw_growth(report, LIMITS.with_name("growth.png"))
    if not quick and not only:
        write_section(README, performance(report))
    sys.exit(any(row.found is None and row.measure == "failed" for row in report.findings))


async def _measure(quick: bool, rows: tuple[str, ...], absurd_sql: Path | None) -> Report:
    began, load = time.monotonic(), os.getloadavg()[0]
    utc = datetime.now(UTC).isoformat(timespec="seconds")
    settings = {peer.name: peer.settings for peer in _peers()}
    versions = _versions()
    with tempfile.TemporaryDirectory(prefix="two-workers-bench-") as scratch:
        async with benchmark_server(Path(scratch)) as server:
            bench = Bench(server, Path(scratch), quick, _say, absurd_sql)
            for row in rows:
                await _row(bench, row)
            return Report(
                utc=utc,
                quick=quick,
                seconds=time.monotonic() - began,
                machine=_machine()
                | {
                    "load before": f"{load:.1f}",
                    "load after": f"{os.getloadavg()[0]:.1f}",
                },
                server=server.settings,
                versions=versions,
                settings=settings,
                findings=bench.findings,
                rounds=bench.rounds,
                samples=bench.samples,
                growth=bench.growth,
            )


async def _row(bench: Bench, name: str) -> None:
    """Measure one row; what goes wrong there must not cost the others."""
    _say(f"== {name}")
    began = time.monotonic()
    try:
        async with asyncio.timeout(PATIENCE):
            await ROWS[name](bench)
    except Exception as error:
        last = str(error).strip().splitlines()[-1:] or [type(error).__name__]
        _say(f"{name} failed: {error}")
        bench.found(name, "failed", None, None, f"{type(error).__name__}: {last[0]}")
    _say(f"   {name}: {time.monotonic() - began:.0f} s")


def _say(line: str) -> None:
    click.echo(line, err=True)


def _peers() -> list[Peer]:
    return [load_peer(name) for name in PEERS]


def _versions() -> dict[str, str]:
    found = {"Python": platform.python_version()}
    for peer in _peers():
        for package in peer.packages:
            try:
                found[package] = version(package)
            except PackageNotFoundError:
                found[package] = "not installed"
    return found


def _machine() -> dict[str, str]:
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        cpu = names[0].partition(":")[2].strip() if names else cpu
    return {"cpu": cpu, "cpus": str(os.cpu_count()), "system": platform.platform()}


if __name__ == "__main__":
    main()
