"""Planted campaigns on disk, as a comparison would have left them."""

from __future__ import annotations

import json
from pathlib import Path

from comparison.evidence import Case
from comparison.ledger import dump

from .planted import Planted
from .planted_crowd import PlantedCrowd

ARMS = ["hand_rolled", "temporal+tuned"]
LOADED = {
    "limits": {},
    "arrivals": 24,
    "most_runs_at_work": 9,
    "most_model_calls_at_once": 7,
    "age_first_quarter": 0.1,
    "age_last_quarter": 2.5,
    "micro_usd": 1_000_000,
    "seconds": 10.0,
}


def keep(case: Case, directory: Path) -> None:
    """Write a case as a campaign would have."""
    directory.mkdir(parents=True, exist_ok=True)
    lines = [dump(record) + "\n" for record in case.calls.ledger.records]
    (directory / "ledger.jsonl").write_text("".join(lines))
    case.write(directory)
    if case.crowd is not None:
        keep(case.crowd, directory / "crowd")


def keep_comparison(home: Path) -> None:
    """The scene, and every arm's one campaign and overload."""
    scene = Planted()
    scene.records = []
    for worker in "AB":
        scene.call("run_123", "0.0", 0, worker, at=1.0, ends=1.1)
    keep(scene.case(), home / "scene")
    (home / "scene" / "played").touch()
    for arm in ARMS:
        keep(PlantedCrowd().beside(Planted(), arm), home / "block-01" / arm)
        (home / "overload" / arm).mkdir(parents=True)
        (home / "overload" / arm / "overload.json").write_text(json.dumps({"without": LOADED}))
