"""`python -m benchmarks` as a person meets it: bad input, an interruption, what it compares."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from benchmarks.__main__ import main
from benchmarks.bench import Bench, Row
from benchmarks.databases import Server, benchmark_server
from benchmarks.peers import ABSURD_SQL
from benchmarks.results import Rounds
from benchmarks.rounds import Contest, Entry, measured
from benchmarks.rows import throughput
from benchmarks.rows.throughput import FAST, READABLE

MEASURING = "== claims"


@pytest.mark.skipif(find_spec("asyncpg") is None, reason="peers are not installed: `make bench`")
def test_an_interruption_ends_it_with_130_and_leaves_nothing_behind(tmp_path: Path) -> None:
    output = tmp_path / "output"
    command = [sys.executable, "-m", "benchmarks", "--quick", "--only", "claims"]
    with output.open("w") as file:
        process = subprocess.Popen(
            [*command, "--output", str(tmp_path / "results")],
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + 60
        while MEASURING not in output.read_text():
            assert process.poll() is None, output.read_text()
            assert time.monotonic() < deadline, output.read_text()
            time.sleep(0.05)
        family = psutil.Process(process.pid).children(recursive=True)
        assert family, "a server runs, so that stopping it is seen"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
    finally:
        process.kill()
        process.wait()
    _, left = psutil.wait_procs(family, timeout=30)
    assert left == []
    assert output.read_text().splitlines()[-1] == "interrupted"
    assert "Traceback" not in output.read_text()
    assert list((tmp_path / "results").iterdir()) == []


@pytest.mark.parametrize("place", ["below a file", "in the kernel's folder"])
def test_a_folder_that_takes_no_results_is_found_before_measuring(
    place: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "results" if place == "below a file" else Path("/proc/results")
    found = CliRunner().invoke(main, ["--quick", "--only", "claims", "--output", str(folder)])
    assert found.exit_code == 2
    [line] = found.output.splitlines()
    assert line.startswith(f"cannot write results to {folder}: ")


def test_a_quick_run_says_that_it_leaves_absurd_out(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    arguments = ["--quick", "--absurd-sql", str(tmp_path / "file")]
    unwritable = ["--output", str(tmp_path / "file" / "results")]  # so that nothing is measured
    found = CliRunner().invoke(main, [*arguments, *unwritable])
    assert found.output.splitlines()[0] == "--absurd-sql is not used: --quick leaves Absurd out"


@pytest.mark.skipif(find_spec("absurdctl") is None, reason="Absurd is not installed")
@pytest.mark.parametrize("text", ["this is no SQL", "SELECT 1"])
async def test_a_file_that_is_no_schema_of_absurd_is_named_in_one_line(
    text: str, tmp_path: Path
) -> None:
    schema = tmp_path / "other.sql"
    schema.write_text(text)
    async with benchmark_server(tmp_path / "server") as server:
        entry = Entry("absurd", "noop", 1, {ABSURD_SQL: str(schema)})
        with pytest.raises(RuntimeError) as failure:
            await measured(server.database, entry)
    [_, line] = str(failure.value).splitlines()
    assert line.startswith(f"--absurd-sql {schema} is no schema of Absurd: ")


@pytest.mark.parametrize("row", [throughput.noop, throughput.steps, throughput.enqueue])
async def test_the_readable_path_is_compared_with_every_peer(
    row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contests: list[Contest] = []

    async def held(self: Contest, arena: object, rounds: int, say: object) -> Rounds:
        contests.append(self)
        counts = {name: entry.count for name, entry in self.entries.items()}
        rates = {name: [1.0] * rounds for name in self.entries}
        return Rounds(contest=self.name, unit=self.unit, rates=rates, counts=counts)

    monkeypatch.setattr(Contest, "held", held)
    bench = Bench(Server("", {}), tmp_path, quick=False, say=lambda line: None)
    await row(bench)
    entries = contests[0].entries
    targets = {finding.measure: finding.target for finding in bench.findings}
    for peer in entries.keys() - {FAST, READABLE}:
        assert targets[f"{READABLE} over {peer}"] == ""
