"""The files that a reader opens by name, from a planted comparison on disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from comparison.arms import find_arm
from comparison.main import check
from comparison.plan import make_plan, spread
from comparison.questions import QUESTIONS
from comparison.results import note

from .stored import ARMS


def judged(done: Path) -> Path:
    plan = make_plan(
        seed=1,
        workers=2,
        investigations=3,
        cells=spread({"kill": 1, "pause": 1}),
        cancellations=1,
        questions=QUESTIONS,
    )
    note(done, ARMS, {"block-01": plan})
    assert check(done) == 0
    return done


def lines(place: Path, arm: str = "hand_rolled") -> list[dict[str, Any]]:
    found = [json.loads(line) for line in place.read_text().splitlines()]
    assert {line["arm"] for line in found} == set(ARMS)
    return [line for line in found if line["arm"] == arm]


def test_the_history_tells_how_a_killed_workers_run_went_on(done: Path) -> None:
    told = lines(judged(done) / "history.jsonl")
    mine = [line for line in told if line["campaign"] == "block-01" and line["run"] == "run-0"]
    assert [(line["t"], line["what"], line["worker"], line["fence"]) for line in mine] == [
        (0.0, "run started", None, None),
        (0.9, "owner changed", "A", [1]),
        (1.0, "call begun", "A", [1]),
        (1.1, "call answered", "A", [1]),
        (1.15, "step recorded", "A", [1]),
        (1.9, "call begun", "A", [1]),
        (2.1, "call answered", "A", [1]),
        (3.9, "owner changed", "B", [2]),
        (4.0, "call begun", "B", [2]),
        (4.1, "call answered", "B", [2]),
        (4.15, "step recorded", "B", [2]),
        (5.0, "run ended", None, None),
    ]
    aborted = next(line for line in mine if line["t"] == 2.1)
    assert (aborted["step"], aborted["delivered"]) == ("run-0/1.0", False)
    struck = [(line["t"], line["kind"]) for line in told if line["what"] == "fault struck"]
    assert (2.0, "kill") in struck
    assert any(line["campaign"] == "block-01/crowd" for line in told), "and what went on beside it"


def test_every_fault_is_told_with_what_it_hit(done: Path) -> None:
    kill, pause = lines(judged(done) / "faults.jsonl")
    assert (kill["kind"], kill["point"], kill["victim"]) == ("kill", "begin", "A")
    assert (kill["struck"], kill["hit"], kill["landed"]) == (2.0, ["run-0/1.0"], True)
    assert kill["back"] is None, "the dead do not come back"
    assert (pause["kind"], pause["back"]) == ("pause", 13.0)


def test_the_settings_and_the_surroundings_have_a_file_each(done: Path) -> None:
    home = judged(done)
    config = json.loads((home / "config.json").read_text())
    assert config["settings"]["temporal+tuned"] == find_arm("temporal+tuned").env
    assert (config["seed"], config["arms"]) == (1, ARMS)
    assert config["samples"] == {"kill at begin": 1, "pause at reply": 1}
    environment = json.loads((home / "environment.json").read_text())
    assert {"seconds", "environment", "parts"} == environment.keys()
    assert not environment.keys() & config.keys(), "nothing is a source twice"


def test_every_raw_sample_is_in_the_results(done: Path) -> None:
    results = json.loads((judged(done) / "results.json").read_text())
    measured = results["results"][0]["measures"]
    waits = {wait["run"]: wait["takeover"] for wait in measured["recoveries"]}
    assert waits == {"run-0": 1.995, "run-1": 1.995}
    assert [hit["run"] for hit in measured["hits"]] == ["run-0", "run-1"]
    assert [cancel["run"] for cancel in measured["cancellations"]] == ["run-2"]
    [twin] = measured["overhead"]["runs"]
    assert (twin["steps"], twin["calling"]) == (2, 0.2)
