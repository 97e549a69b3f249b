"""What is done is not done again, and what is on disk decides the exit code."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from comparison import main
from comparison.difference import broken, changes, difference, read_limit
from comparison.main import check, compare_full
from comparison.stats import Interval
from two_workers import BadInput

from .planted import Planted, S
from .stored import ARMS, keep


def ages(directory: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in directory.rglob("evidence.json")}


def files(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir() if path.is_file()}


async def test_a_comparison_goes_on_where_it_was_interrupted(tmp_path: Path, done: Path) -> None:
    before = ages(done)
    assert await compare_full(arms=ARMS, seed=1, results=tmp_path, blocks=1) == 0
    assert ages(done) == before
    assert files(done) == {
        *("asked.json", "config.json", "environment.json", "history.jsonl", "faults.jsonl"),
        *("results.json", "summary.md", "summary.csv", "junit.xml", "report.html"),
    }
    summary = (done / "summary.md").read_text()
    assert "| queue age, first quarter and last, without | 0.1 s, 2.5 s | 0.1 s, 2.5 s |" in summary
    assert "history.jsonl says what happened, faults.jsonl what was broken" in summary
    assert "| spent a second, within | not measured | not measured |" in summary


async def test_campaigns_of_another_experiment_are_not_gone_on_with(
    tmp_path: Path, done: Path
) -> None:
    await compare_full(arms=ARMS, seed=1, results=tmp_path, blocks=1)
    with pytest.raises(BadInput, match="part of another comparison"):
        await compare_full(arms=ARMS, seed=1, results=tmp_path, blocks=1, faults=["kill"])


@pytest.mark.parametrize(
    ("plant", "code"),
    [
        (lambda planted: planted.write("run-1", "1.0", 1, "C", at=13.1), 1),
        (lambda planted: planted.cancellations.clear(), 2),
        (lambda planted: None, 0),
    ],
    ids=["a violation", "a check without evidence", "nothing"],
)
async def test_the_exit_code_is_that_of_the_worst_verdict(
    tmp_path: Path, done: Path, plant: object, code: int
) -> None:
    planted = Planted()
    assert callable(plant)
    plant(planted)
    keep(planted.case("hand_rolled"), done / "block-01" / "hand_rolled")
    assert await compare_full(arms=ARMS, seed=1, results=tmp_path, blocks=1) == code
    assert check(done) == code, "and again, from the evidence alone"


async def test_latest_leads_to_no_comparison_that_was_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "carry_out", interrupted)
    with pytest.raises(KeyboardInterrupt):
        main.compare(
            arms=ARMS, seed=1, workers=2, investigations=1, faults={"kill": 1}, results=tmp_path
        ).send(None)
    [begun] = (tmp_path / "compare").iterdir()
    assert begun.name != "latest"
    main.point_latest_to(begun)
    assert (tmp_path / "compare" / "latest").resolve() == begun.resolve()


async def slower(tmp_path: Path, done: Path, seconds: float) -> Path:
    """The same comparison, but B took `seconds` longer to take the killed worker's run over."""
    other = tmp_path / "other"
    shutil.copytree(done, other)
    planted = Planted()
    later = int(seconds * S)
    planted.records[8:10] = [replace(r, t_ns=r.t_ns + later) for r in planted.records[8:10]]
    planted.writes = [
        write.model_copy(update={"t_ns": write.t_ns + later})
        if (write.key, write.worker) == ("run-0/1.0", "B")
        else write
        for write in planted.writes
    ]
    keep(planted.case("hand_rolled"), other / "block-01" / "hand_rolled")
    return other


async def test_a_regression_beyond_the_limit_is_found_and_a_small_one_is_not(
    tmp_path: Path, done: Path
) -> None:
    await compare_full(arms=ARMS, seed=1, results=tmp_path, blocks=1)
    other = await slower(tmp_path, done, seconds=1.0)
    found = changes(done, other)
    [recovery] = [c for c in found if (c.arm, c.metric) == ("hand_rolled", "recovery_p50")]
    assert recovery.new.value - recovery.old.value == pytest.approx(1.0)
    assert recovery.is_noise, "one fault each has no interval, so nothing is shown"
    limits = [read_limit("recovery_p50:+20%")]
    assert broken(found, limits) == []
    assert difference(done, other).unknown(limits) == [
        "hand_rolled recovery_p50: rose, and one fault alone has no interval"
    ]
    certain = replace(
        recovery,
        old=Interval(2.0, 1.9, 2.1),
        new=Interval(3.0, 2.9, 3.1),
    )
    assert broken([certain], [read_limit("recovery_p50:+20%")]) == [certain]
    assert broken([certain], [read_limit("recovery_p50:+60%")]) == []
    assert broken([certain], [read_limit("recovery_p50:+1.5")]) == []
    assert broken([certain], [read_limit("lost:+0")]) == []


@pytest.mark.parametrize("text", ["recovery_p50", "speed:+20%", "lost:-1", "lost:+x"])
def test_a_limit_that_cannot_be_read_is_one_clear_error(text: str) -> None:
    with pytest.raises(BadInput, match="expected METRIC"):
        read_limit(text)


async def test_a_missing_campaign_is_one_clear_error(tmp_path: Path, done: Path) -> None:
    await compare_full(arms=ARMS, seed=1, results=tmp_path, blocks=1)
    (done / "block-01" / "hand_rolled" / "evidence.json").unlink()
    with pytest.raises(BadInput, match="not the results of a whole comparison"):
        check(done)
