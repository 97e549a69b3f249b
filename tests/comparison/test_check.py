"""Judging again: what is damaged is refused before anything is written, what changed is said."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from comparison import results
from comparison.environment import describe
from comparison.main import check, compare_full
from comparison.plan import Plan, make_plan, spread
from comparison.questions import QUESTIONS
from comparison.results import note, note_part
from two_workers import BadInput
from two_workers.cli.compare import check as check_command

from .planted import Planted
from .planted_crowd import PlantedCrowd
from .stored import ARMS, keep

LEDGER = "block-01/hand_rolled/ledger.jsonl"


@pytest.fixture
def noted(done: Path) -> Path:
    """A whole comparison, not judged yet."""
    note(done, ARMS, {"block-01": plan()})
    return done


def plan() -> Plan:
    return make_plan(
        seed=1,
        workers=2,
        investigations=3,
        cells=spread({"kill": 1, "pause": 1}),
        cancellations=1,
        questions=QUESTIONS,
    )


def lines(home: Path, name: str, change: Callable[[list[str]], list[str]]) -> None:
    (home / name).write_text("".join(change((home / name).read_text().splitlines(True))))


def experiment(home: Path, **changed: Any) -> None:
    place = home / "config.json"
    place.write_text(json.dumps({**json.loads(place.read_text()), **changed}))


def without_a_call(records: list[str]) -> list[str]:
    """Both records of the sixth call taken out, the others numbered anew."""
    kept = [json.loads(line) for line in records if json.loads(line)["call"] != 6]
    return [json.dumps({**fields, "seq": seq}) + "\n" for seq, fields in enumerate(kept, 1)]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (
            lambda home: lines(home, LEDGER, lambda all_: all_[:8]),
            "was cut: expected 20 records, found 8",
        ),
        (lambda home: lines(home, LEDGER, lambda all_: []), "an empty ledger is no evidence"),
        (lambda home: lines(home, LEDGER, lambda all_: ["{}\n", *all_]), "line 1: not the next"),
        (lambda home: lines(home, LEDGER, without_a_call), "calls missing: 1, first number 6"),
        (lambda home: lines(home, "scene/ledger.jsonl", lambda all_: []), "scene/ledger.jsonl: an"),
        (lambda home: (home / "config.json").write_text("[]"), "config.json: expected an object"),
        (lambda home: experiment(home, seed=2), "its seed is 2"),
        (lambda home: experiment(home, arms=ARMS[:1]), "it has settings of"),
        (
            lambda home: experiment(home, arms=ARMS[:1], settings={ARMS[0]: {}}),
            r"does not name: block-01/temporal\+tuned, overload/temporal\+tuned",
        ),
        (
            lambda home: keep(Planted().case("temporal+tuned"), home / "block-01" / "hand_rolled"),
            "holds evidence of temporal",
        ),
    ],
    ids=[
        *("cut", "emptied", "of another kind", "a call taken out", "empty scene"),
        *("a list", "another seed", "an arm taken out", "and its settings", "another arm's"),
    ],
)
def test_damaged_evidence_is_one_sentence_and_nothing_is_written(
    noted: Path, damage: Callable[[Path], object], said: str
) -> None:
    damage(noted)
    with pytest.raises(BadInput, match=said):
        check(noted)
    assert not (noted / "results.json").exists()


def test_an_overload_that_was_made_and_is_gone_is_missed(done: Path) -> None:
    note_part(done / "overload" / "hand_rolled", seconds=10.0)
    note(done, ARMS, {"block-01": plan()})
    for arm in ARMS:
        shutil.rmtree(done / "overload" / arm)
    with pytest.raises(
        BadInput, match=r"not the results .*overload/hand_rolled/overload\.json: No"
    ):
        check(done)
    assert not (done / "results.json").exists()


def test_what_is_derived_is_said_to_be_and_the_evidence_is_left_alone(
    noted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def everything() -> dict[str, bytes]:
        return {
            str(place.relative_to(noted)): place.read_bytes()
            for place in noted.rglob("*")
            if place.is_file()
        }

    evidence = everything()
    assert check(noted) == 0
    assert "The evidence is config.json and environment.json and what is in the folders" in (
        " ".join(capsys.readouterr().out.split())
    )
    derived = everything()
    assert {name: derived[name] for name in evidence} == evidence
    told = " ".join((check_command.help or "").split())
    assert all(name in told for name in derived.keys() - evidence.keys())


def test_what_an_earlier_report_said_otherwise_is_said(
    noted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planted = Planted()
    planted.write("run-1", "1.0", 1, "C", at=13.1)
    keep(planted.case("hand_rolled"), noted / "block-01" / "hand_rolled")
    assert check(noted) == 1
    assert "earlier report" not in capsys.readouterr().out
    judged = json.loads((noted / "results.json").read_text())
    assert judged["judged_by"] == describe()["commit"]
    (noted / "results.json").write_text(json.dumps({**judged, "judged_by": "0ld"}))
    keep(PlantedCrowd().beside(Planted(), "hand_rolled"), noted / "block-01" / "hand_rolled")
    assert check(noted) == 0
    said = capsys.readouterr().out
    assert "it was FAIL, judged by 0ld; now pass, judged by" in said
    assert "hand_rolled INV-FENCE: was FAIL, now pass" in said


async def test_parts_made_by_two_commits_are_not_said_to_be_of_one(
    tmp_path: Path, done: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [done / "scene", *(done / "block-01" / arm for arm in ARMS)]
    parts += [done / "overload" / arm for arm in ARMS]
    for number, part in enumerate(parts):
        commit = "aaa" if number < 2 else "bbb"
        monkeypatch.setattr(results, "describe", lambda commit=commit: {"commit": commit})
        note_part(part, seconds=10.0)
    monkeypatch.undo()
    await compare_full(arms=ARMS, seed=1, results=tmp_path, blocks=1)
    first = json.loads((done / "environment.json").read_text())
    assert first["environment"]["commit"] == "mixed: aaa in 2 parts, bbb in 3 parts"
    assert first["seconds"] == 50.0
    assert first["parts"]["block-01/hand_rolled"]["environment"]["commit"] == "aaa"
    assert "mixed: aaa in 2 parts" in (done / "summary.md").read_text()
    await compare_full(arms=ARMS, seed=1, results=tmp_path, blocks=1)
    assert json.loads((done / "environment.json").read_text()) == first, "nothing was left to run"


def test_a_ledger_cut_after_its_last_fault_is_no_evidence(noted: Path) -> None:
    lines(noted, LEDGER, lambda records: records[:-2])
    with pytest.raises(BadInput, match=r"ledger\.jsonl was cut: expected \d+ records, found \d+"):
        check(noted)
    assert not (noted / "results.json").exists()


def test_evidence_that_did_not_note_its_ledgers_length_is_judged_as_before(noted: Path) -> None:
    place = noted / "block-01" / "hand_rolled" / "evidence.json"
    evidence = json.loads(place.read_text())
    del evidence["ledger_seq"]
    place.write_text(json.dumps(evidence))
    assert check(noted) == 0
    lines(noted, LEDGER, lambda records: records[:8])
    with pytest.raises(BadInput, match="ends before the faults"):
        check(noted)


def test_a_comparison_noted_in_one_file_is_still_read(noted: Path) -> None:
    config, environment = noted / "config.json", noted / "environment.json"
    both = json.loads(config.read_text()) | json.loads(environment.read_text())
    (noted / "experiment.json").write_text(json.dumps(both))
    config.unlink()
    environment.unlink()
    assert check(noted) == 0
    assert not config.exists(), "a source is not made from a source"
    assert "experiment.json what was planned" in (noted / "summary.md").read_text()
    note(noted, ARMS, {"block-01": plan()})
    assert not (noted / "experiment.json").exists(), "and never both"
    assert check(noted) == 0
