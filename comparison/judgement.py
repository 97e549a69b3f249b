"""What a report said, and by which version: a later one that says otherwise must not hide it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from comparison.render import Report
from comparison.verdicts import Outcome, worst


@dataclass(frozen=True)
class Judgement:
    """Every verdict, by arm and invariant, the worst of all, and the commit that judged."""

    commit: str
    outcome: Outcome
    verdicts: Mapping[tuple[str, str], Outcome]

    @classmethod
    def of(cls, report: Report, commit: str) -> Judgement:
        """What a report says. A first scene that was not paid twice leaves the whole unknown."""
        verdicts = {
            (result.arm, verdict.invariant): verdict.outcome
            for result in report.results
            for verdict in result.verdicts
        }
        scene = Outcome.PASS if report.scene.twice else Outcome.UNKNOWN
        return cls(commit, worst([*verdicts.values(), scene]), verdicts)

    def against(self, earlier: Judgement) -> list[str]:
        """What it says otherwise than an earlier one, whose report it replaces."""
        then, now = f"judged by {earlier.commit}", f"judged by {self.commit}"
        if (self.outcome, dict(self.verdicts)) == (earlier.outcome, dict(earlier.verdicts)):
            return [f"An earlier report ({then}) is replaced; it had the same verdicts."]
        lines = [
            f"An earlier report is replaced: it was {earlier.outcome}, {then}; "
            f"now {self.outcome}, {now}."
        ]
        for arm, invariant in dict.fromkeys([*earlier.verdicts, *self.verdicts]):
            was = earlier.verdicts.get((arm, invariant), "not judged")
            is_now = self.verdicts.get((arm, invariant), "not judged")
            if was != is_now:
                lines.append(f"  {arm} {invariant}: was {was}, now {is_now}")
        return lines


def read_judgement(directory: Path) -> Judgement | None:
    """What `results.json` says; None when there is none to be read."""
    try:
        noted = json.loads((directory / "results.json").read_text())
        verdicts = {
            (result["arm"], verdict["invariant"]): Outcome(verdict["outcome"])
            for result in noted["results"]
            for verdict in result["verdicts"]
        }
        outcome = Outcome(noted.get("outcome") or worst(verdicts.values()))
        return Judgement(noted.get("judged_by", "an unnamed commit"), outcome, verdicts)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
