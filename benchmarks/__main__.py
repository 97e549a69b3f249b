"""`python -m benchmarks`: measure, print the table, write JSON, plots and the pages' figures."""

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
from benchmarks.plots import draw_durations, draw_growth, draw_rates
from benchmarks.report import (
    BENCH,
    OWNERSHIP,
    growth,
    performance,
    print_table,
    summary,
    takeovers,
    write_json,
    write_section,
)
from benchmarks.results import Report
from benchmarks.rows import NOT_QUICK, OWNERSHIP_ROWS, PATIENT, ROWS
from two_workers import BadInput, EngineUnavailable
from two_workers.cli.process import run_async

ROOT = Path(__file__).parent
README, FIGURES, LIMITS = ROOT.parent / "README.md", ROOT / "FIGURES.md", ROOT / "LIMITS.md"
MEASURED = ROOT / "measured"  # the reports behind these pages
PATIENCE = 900.0  # seconds for one row
WIDE = 160  # columns of a table that goes to a file


@click.command()
@click.option(
    "--quick",
    is_flag=True,
    help="Smaller counts, fewer contenders, three rounds: under two minutes.",
)
@click.option(
    "--ownership",
    is_flag=True,
    help="Takeover, zombie and cancel alone, at the defaults too: about ten minutes.",
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
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where results go; results/bench, or results/ownership, if not given.",
)
def main(
    quick: bool,
    ownership: bool,
    only: tuple[str, ...],
    absurd_sql: Path | None,
    output: Path | None,
) -> None:
    """Measure this project beside its Python peers and beside PostgreSQL itself.

    Without --quick and --only, the figures in README.md, benchmarks/FIGURES.md and
    benchmarks/LIMITS.md are rewritten and the report behind them is kept in benchmarks/measured.
    Exit code 1 if something could not be measured, 130 after Ctrl-C.
    """
    if ownership and (quick or only):
        raise click.UsageError("--ownership is a run of its own: leave out --quick and --only")
    name = OWNERSHIP if ownership else BENCH
    if quick and absurd_sql is not None:
        _say("--absurd-sql is not used: --quick leaves Absurd out")
    try:
        results = _writable(output or Path("results") / name)
        report, failures = run_async(_measure(quick, _rows(quick, name, only), absurd_sql))
        _written(report, results / report.utc.replace(":", ""))
        if not quick and not only:
            _rewrite_pages(report, name)
    except (BadInput, EngineUnavailable) as error:
        _say(str(error))
        sys.exit(2)
    except KeyboardInterrupt:
        _say("interrupted")
        sys.exit(130)
    sys.exit(failures > 0)


def _writable(folder: Path) -> Path:
    """The folder, made and tried before minutes are spent on results that it could not take."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        raise BadInput(
            f"cannot write results to {folder}: {error.strerror}; name another --output"
        ) from error


def _written(report: Report, folder: Path) -> None:
    write_json(report, folder / "bench.json")
    draw_rates(report, folder / "rates.png")
    draw_durations(report, folder / "durations.png")
    draw_growth(report, folder / "growth.png")
    print_table(report, Console(width=None if sys.stdout.isatty() else WIDE))
    click.echo(f"written: {folder}")


def _rows(quick: bool, name: str, only: tuple[str, ...]) -> tuple[str, ...]:
    if only:
        return only
    if name == OWNERSHIP:
        return OWNERSHIP_ROWS
    left_out = PATIENT | NOT_QUICK if quick else PATIENT
    return tuple(row for row in ROWS if row not in left_out)


def _rewrite_pages(report: Report, name: str) -> None:
    write_json(report, MEASURED / f"{name}.json")
    if name == OWNERSHIP:
        write_section(FIGURES, OWNERSHIP, takeovers(report))
        return
    write_section(README, BENCH, summary(report))
    write_section(FIGURES, BENCH, performance(report))
    write_section(LIMITS, BENCH, growth(report))
    draw_growth(report, LIMITS.with_name("growth.png"))


async def _measure(
    quick: bool, rows: tuple[str, ...], absurd_sql: Path | None
) -> tuple[Report, int]:
    """The report, and how many of its measurements failed."""
    began, load = time.monotonic(), os.getloadavg()[0]
    utc = datetime.now(UTC).isoformat(timespec="seconds")
    settings = {peer.name: peer.settings for peer in _peers()}
    versions = _versions()
    with tempfile.TemporaryDirectory(prefix="two-workers-bench-") as scratch:
        async with benchmark_server(Path(scratch)) as server:
            bench = Bench(server, Path(scratch), quick, _say, absurd_sql)
            for row in rows:
                await _row(bench, row)
            report = Report(
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
                row_seconds=bench.row_seconds,
            )
            return report, bench.failures


async def _row(bench: Bench, name: str) -> None:
    """Measure one row; what goes wrong there must not cost the others."""
    _say(f"== {name}")
    began = time.monotonic()
    try:
        async with asyncio.timeout(PATIENCE):
            await ROWS[name](bench)
    except Exception as error:
        bench.failed(name, "all of it", error)
    bench.row_seconds[name] = time.monotonic() - began
    _say(f"   {name}: {bench.row_seconds[name]:.0f} s")


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
