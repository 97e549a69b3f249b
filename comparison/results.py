"""Judge evidence, write the report in all its forms, and say the exit code.

<directory>/experiment.json     seed, arms, plan, environment: what the experiment was
<directory>/<campaign>/<arm>/   evidence, ledger and logs of each campaign
<directory>/results.json, summary.md, summary.csv, junit.xml, report.html
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from comparison.arms import find_arm
from comparison.checks import judge
from comparison.environment import describe
from comparison.evidence import Case
from comparison.files import to_csv, to_junit
from comparison.ledger import Ledger
from comparison.measures import measure
from comparison.measures import pool as pool_measures
from comparison.overloads import read_overloads
from comparison.page.page import to_html
from comparison.plan import Plan
from comparison.render import Report, to_markdown, to_terminal
from comparison.report import ArmResult, rows
from comparison.scene import Paid, paid
from comparison.verdicts import EXIT_CODES, Outcome, worst
from comparison.verdicts import pool as pool_verdicts
from two_workers import BadInput


def note(
    directory: Path, arms: Sequence[str], campaigns: Mapping[str, Plan], seconds: float
) -> None:
    """Freeze what the experiment is, beside its evidence. `campaigns` are named like folders."""
    experiment = {
        "seed": next(iter(campaigns.values())).seed,
        "arms": list(arms),
        "seconds": round(seconds, 1),
        "environment": describe(),
        "settings": {name: dict(find_arm(name).env) for name in arms},
        "campaigns": {name: asdict(plan) for name, plan in campaigns.items()},
    }
    (directory / "experiment.json").write_text(json.dumps(experiment, indent=1))


def conclude(directory: Path, console: Console) -> int:
    """Judge, measure and report what is under `directory`. Returns the exit code.

    Raises `BadInput` when it holds no whole comparison.
    """
    report, evidence = _read(directory)
    _write(directory, report, evidence)
    to_terminal(report, console)
    console.print(f"\nEverything is in {directory}", soft_wrap=True)
    return EXIT_CODES[_overall(report.scene, report.results)]


def load(directory: Path) -> Report:
    """The report on what is under `directory`, judged and measured now. Raises `BadInput`."""
    return _read(directory)[0]


def _read(directory: Path) -> tuple[Report, dict[str, list[Case]]]:
    try:
        experiment = json.loads((directory / "experiment.json").read_text())
        evidence = {
            arm: [Case.read(directory / name / arm) for name in experiment["campaigns"]]
            for arm in experiment["arms"]
        }
        scene = paid(Ledger.read(directory / "scene" / "ledger.jsonl"))
    except (OSError, ValueError, KeyError) as error:
        raise BadInput(f"{directory}: not the results of a whole comparison: {error}") from error
    results = [
        replace(judged(cases), overloads=read_overloads(directory, arm))
        for arm, cases in evidence.items()
    ]
    seed, environment = experiment["seed"], experiment["environment"]
    return Report(seed, environment, scene, results, experiment["seconds"]), evidence


def judged(cases: Sequence[Case]) -> ArmResult:
    """One arm: the campaigns judged and measured one by one, then pooled."""
    evidence = [case.evidence for case in cases]
    pressures = [e.cpu_pressure for e in evidence if e.cpu_pressure is not None]
    return ArmResult(
        arm=evidence[0].arm,
        verdicts=pool_verdicts([judge(case) for case in cases]),
        measures=pool_measures([measure(case) for case in cases]),
        server={name: str(value) for name, value in evidence[0].server.items()},
        cpu_pressure=sum(pressures) / len(pressures) if pressures else None,
    )


def _write(directory: Path, report: Report, evidence: Mapping[str, Sequence[Case]]) -> None:
    table = [asdict(row) for row in rows(report.results)]
    everything: dict[str, Any] = {**asdict(report), "table": table}
    (directory / "results.json").write_text(json.dumps(everything, indent=1, default=str))
    (directory / "summary.md").write_text(to_markdown(report))
    (directory / "summary.csv").write_text(to_csv(report.results))
    (directory / "junit.xml").write_text(to_junit(report.results))
    (directory / "report.html").write_text(to_html(report, evidence))


def _overall(scene: Paid, results: Sequence[ArmResult]) -> Outcome:
    verdicts = [verdict.outcome for result in results for verdict in result.verdicts]
    return worst([*verdicts, Outcome.PASS if scene.twice else Outcome.UNKNOWN])
