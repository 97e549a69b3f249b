"""What a benchmark computes and writes, apart from measuring."""

from __future__ import annotations

from importlib.util import find_spec
from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner
from matplotlib.image import imread
from rich.console import Console

from benchmarks.__main__ import FIGURES, LIMITS, MEASURED, README, main
from benchmarks.bench import UNDISTURBED, Bench
from benchmarks.peers import PEERS, load_peer
from benchmarks.peers.holders import HOLDERS, load_holder
from benchmarks.plots import draw_durations, draw_rates
from benchmarks.ratios import median, p95, ratio, ratio_of_medians
from benchmarks.report import (
    BENCH,
    OWNERSHIP,
    figure,
    growth,
    marks,
    performance,
    print_table,
    read_section,
    summary,
    takeovers,
    write_json,
    write_section,
)
from benchmarks.results import TAKEOVER, Estimate, Finding, Report, Rounds
from benchmarks.targets import Target
from two_workers import BadInput

BEGIN, END = marks(BENCH)
NEEDS = {
    "pgqueuer": ["pgqueuer", "asyncpg"],
    "dbos": ["dbos"],
    "procrastinate": ["procrastinate"],
    "absurd": ["absurd_sdk", "absurdctl"],
}


def report(*more: Finding) -> Report:
    row = Finding(
        row="claims/s",
        measure="ours | theirs",
        found=Estimate(value=0.75, low=0.5, high=1.0, n=5),
        unit="×",
        target="≥ 0.5 ×",
        reached=True,
        note="3 against 4",
    )
    return Report(
        utc="2026-11-29T12:00:00+00:00",
        quick=False,
        seconds=540,
        machine={"cpu": "cpu", "cpus": "2", "load before": "0.1", "load after": "1.0"},
        server={"server_version": "18", "fsync": "on", "synchronous_commit": "on"},
        versions={"Python": "3.11"},
        settings={"peer": "its settings"},
        findings=[row, *more],
        rounds=[Rounds(contest="claims", unit="claims/s", rates={"ours": [3.0], "theirs": [4.0]})],
        samples={"takeover: ours": [0.3, 0.4]},
        growth={"claim p50, ms, by pending runs": [(1000, 1.0)]},
        row_seconds={"claims": 31.4, "growth": 26.0},
    )


def test_a_ratio_is_paired_by_round_so_a_slow_round_does_not_count() -> None:
    found = ratio([10, 1, 20, 10, 4], [5, 0.5, 10, 5, 2])
    assert found.value == pytest.approx(2)
    assert found.n == 5


def test_a_ratios_interval_contains_it_and_grows_with_disagreement() -> None:
    calm, wild = ratio([2.0, 2.1, 1.9, 2.05, 2.0], [1] * 5), ratio([1, 2, 4, 2, 2], [1] * 5)
    for found in calm, wild:
        assert found.low is not None
        assert found.high is not None
        assert found.low <= found.value <= found.high
    assert wild.high - wild.low > calm.high - calm.low  # type: ignore[operator] # seen above


def test_two_rounds_carry_no_interval() -> None:
    found = ratio([2, 4], [1, 1])
    assert (found.low, found.high) == (None, None)


def test_fewer_than_59_samples_carry_no_p95() -> None:
    assert p95([0.1] * 58) is None
    found = p95([n / 59 for n in range(59)])
    assert found is not None
    assert found.value > 0.9


def test_a_median_and_a_ratio_of_medians_have_intervals() -> None:
    found = median([n / 100 for n in range(100)])
    assert found.low is not None
    assert found.low < found.value
    twice = ratio_of_medians([2.0, 2.2, 1.8] * 20, [1.0, 1.1, 0.9] * 20)
    assert twice.value == pytest.approx(2)


@pytest.mark.parametrize(
    ("target", "value", "reached"),
    [
        (Target("at least", 1.5), 1.5, True),
        (Target("at least", 1.5), 1.49, False),
        (Target("at most", 0.5, "s"), 0.5, True),
        (Target("at most", 0, "writes"), 1, False),
    ],
)
def test_a_target_is_reached_or_missed(target: Target, value: float, reached: bool) -> None:
    assert target.is_reached(Estimate(value=value, low=None, high=None, n=1)) is reached


def test_a_row_without_a_figure_is_neither_reached_nor_missed(tmp_path: Path) -> None:
    bench = Bench(server=None, directory=tmp_path, quick=True, say=print)  # type: ignore[arg-type] # nothing is measured
    bench.found("takeover", "p95", None, Target("at most", 0.5, "s"), "n too small")
    assert bench.findings[0].reached is None


def test_what_had_not_happened_by_then_is_more_than_the_figure() -> None:
    never = Estimate(value=300, low=None, high=None, n=3, beyond=True)
    assert figure(never, "s") == "> 300 s"


def test_what_could_not_be_measured_is_said_and_counted(tmp_path: Path) -> None:
    said: list[str] = []
    bench = Bench(server=None, directory=tmp_path, quick=True, say=said.append)  # type: ignore[arg-type] # nothing is measured
    bench.failed("zombie", "DBOS", RuntimeError("first line\nno such table\n      ^"))
    bench.failed("zombie", "Absurd", TimeoutError())
    assert bench.findings[0].note == "failed: RuntimeError: no such table"
    assert bench.findings[1].note == "failed: TimeoutError: no words"
    assert bench.failures == 2
    assert "zombie, DBOS failed" in said[0]


def test_each_comparison_of_throughput_says_of_how_many_and_what_else_was_going_on(
    tmp_path: Path,
) -> None:
    bench = Bench(server=None, directory=tmp_path, quick=True, say=lambda line: None)  # type: ignore[arg-type] # nothing is measured
    rates = {"ours": [3.0], "theirs": [4.0]}
    counts = {"ours": 4_000, "theirs": 40}
    rounds = Rounds(contest="claims", unit="claims/s", rates=rates, counts=counts)
    bench.compared("claims/s", rounds, "ours", "theirs", None)
    bench.compared("claims/s", rounds, "ours", "ours", None)
    assert [finding.note for finding in bench.findings] == [
        f"3 against 4 claims/s; 4,000 against 40 claims; {UNDISTURBED}",
        f"3 against 3 claims/s; 4,000 claims each; {UNDISTURBED}",
    ]


def test_the_time_of_each_row_ends_the_table() -> None:
    console = Console(record=True, width=200, file=StringIO())
    print_table(report(), console)
    assert "540 s; by row: claims 31, growth 26" in console.export_text()


def test_a_figure_shows_its_interval() -> None:
    assert figure(Estimate(value=1234, low=1100, high=1300, n=5), "runs/s").startswith("1,234 [")
    assert figure(None, "s") == "-"


def test_the_json_holds_everything(tmp_path: Path) -> None:
    write_json(report(), tmp_path / "deep" / "bench.json")
    assert Report.model_validate_json((tmp_path / "deep" / "bench.json").read_text()) == report()


def test_each_row_of_durations_gets_its_part_of_the_picture(tmp_path: Path) -> None:
    draw_durations(report(), tmp_path / "one.png")
    more = report().model_copy(
        update={"samples": {"takeover: ours": [0.3], "takeover: theirs": [], "cancel: ours": [1.0]}}
    )
    draw_durations(more, tmp_path / "two.png")
    one, two = (imread(tmp_path / name) for name in ("one.png", "two.png"))
    assert two.shape[0] > one.shape[0]  # two rows of pictures are higher than one
    draw_rates(report().model_copy(update={"rounds": []}), tmp_path / "none.png")
    assert not (tmp_path / "none.png").exists()


def test_only_the_readmes_own_section_is_replaced(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"# before\n\n{BEGIN}\nold\n{END}\n\n# after\n")
    write_section(readme, BENCH, performance(report()))
    text = readme.read_text()
    assert text.startswith("# before\n")
    assert text.endswith("# after\n")
    assert "old" not in text
    assert "| claims/s | ours \\| theirs | 0.75 [0.5–1] × | ≥ 0.5 × | reached |" in text
    write_section(readme, BENCH, performance(report()))
    assert readme.read_text() == text


def test_every_page_says_what_else_was_going_on() -> None:
    for page in summary, performance, growth, takeovers:
        section = page(report())
        assert "Limits are unset and no snapshot is held where" in section


def test_the_readme_has_the_targets_and_says_where_a_peer_is_ahead() -> None:
    def row(measure: str, value: float, unit: str, note: str = "") -> Finding:
        found = Estimate(value=value, low=None, high=None, n=1)
        return Finding(
            row="r", measure=measure, found=found, unit=unit, target="", reached=None, note=note
        )

    text = summary(
        report(
            row("ours over A", 0.5, "×", "3 against 6"),
            row("ours over B", 2.0, "×"),
            row("C", 0.1, "s", "of 3; sooner than hand_rolled"),
            row("D", 0.1, "s", "of 3"),
        )
    )
    assert "| claims/s: ours \\| theirs | 0.75 [0.5–1] × | ≥ 0.5 × | reached |" in text
    *_, first, second = text.splitlines()
    assert first == "- r: ours over A: 0.5 × (3 against 6)"
    assert second == "- r: C: 0.1 s (of 3; sooner than hand_rolled)"


def test_growth_becomes_a_table() -> None:
    assert "| pending runs | 1,000 |\n|---|---|\n| claim p50, ms | 1 |" in growth(report())


def test_a_readme_without_the_section_is_left_alone(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("# nothing here\n")
    with pytest.raises(BadInput, match="no lines"):
        write_section(readme, BENCH, performance(report()))
    assert readme.read_text() == "# nothing here\n"


def test_a_run_about_ownership_writes_its_takeovers_only(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("\n".join([*marks(BENCH), *marks(OWNERSHIP)]))
    never = Finding(
        row=TAKEOVER,
        measure="DBOS, median of 3",
        found=Estimate(value=300, low=None, high=None, n=3, beyond=True),
        unit="s",
        target="",
        reached=None,
        note="never in 300 s (3 of 3 kills)",
    )
    write_section(readme, OWNERSHIP, takeovers(report(never)))
    assert read_section(readme, BENCH) == ""
    assert "| DBOS, median of 3 | > 300 s |" in read_section(readme, OWNERSHIP)
    assert "claims/s" not in read_section(readme, OWNERSHIP)


def test_the_pages_say_what_the_kept_report_found() -> None:
    kept = Report.model_validate_json((MEASURED / "bench.json").read_text())
    assert not kept.quick
    assert read_section(README, BENCH) == summary(kept)
    assert read_section(FIGURES, BENCH) == performance(kept)
    assert read_section(LIMITS, BENCH) == growth(kept)
    kept = Report.model_validate_json((MEASURED / "ownership.json").read_text())
    assert read_section(FIGURES, OWNERSHIP) == takeovers(kept)


def test_a_run_about_ownership_is_a_run_of_its_own() -> None:
    found = CliRunner().invoke(main, ["--ownership", "--quick"])
    assert found.exit_code == 2
    assert "leave out --quick and --only" in found.output


@pytest.mark.parametrize("name", sorted(HOLDERS))
def test_a_holder_is_there_or_says_what_to_install(name: str) -> None:
    if all(find_spec(package) for package in NEEDS.get(name, ())):
        assert callable(load_holder(name).work)
    else:
        with pytest.raises(BadInput, match="make bench"):
            load_holder(name)


@pytest.mark.parametrize("name", sorted(PEERS))
def test_a_peer_is_complete_or_says_what_to_install(name: str) -> None:
    installed = all(find_spec(package) for package in NEEDS.get(name, ()))
    if not installed:
        with pytest.raises(BadInput, match="make bench"):
            load_peer(name)
        return
    peer = load_peer(name)
    assert peer.settings
    assert peer.measures
