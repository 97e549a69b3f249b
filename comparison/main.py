"""`two-workers compare`: the scene, then each arm alone, then the report.

results/compare/<utc>-<seed>/
    scene/                  the first scene's ledger and logs
    <arm>/                  evidence.json, ledger.jsonl, logs/
    results.json            verdicts, figures and every raw sample
    summary.md              the report
    environment.json
results/compare/latest      a link to the newest
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from comparison.arms import Arm, find_arm
from comparison.checks import judge
from comparison.environment import describe
from comparison.evidence import Case
from comparison.files import to_csv, to_junit
from comparison.ledger import Ledger
from comparison.measures import measure
from comparison.page.page import to_html
from comparison.plan import Plan, arm_order, make_plan
from comparison.progress import Progress
from comparison.questions import QUESTIONS
from comparison.render import Report, to_markdown, to_terminal
from comparison.report import ArmResult
from comparison.scene import Paid, paid, play
from comparison.stage import run_arm
from comparison.verdicts import EXIT_CODES, Outcome, worst
from two_workers import BadInput

CANCELLATIONS = 3
"""Of pending runs, and as many of running ones, in each arm."""


async def compare(
    *,
    arms: Sequence[str],
    seed: int,
    workers: int,
    investigations: int,
    kills: int,
    pauses: int,
    results: Path,
    silences: int = 2,
    quick: bool = False,
) -> int:
    """Break real workers on each arm and report. Returns the exit code.

    0 if every verdict passes, 1 if one fails, 2 if one is unknown. `quick` takes two kills, one
    pause and one silence: enough to see that everything works, too little to say anything.
    Raises `BadInput`.
    """
    chosen = _checked(arms, workers, investigations, kills, pauses, silences)
    if quick:
        kills, pauses, silences = min(kills, 2), min(pauses, 1), min(silences, 1)
    console = Console()
    progress = Progress(console)
    began = time.monotonic()
    directory = _directory(results, seed)
    plan = make_plan(
        seed=seed,
        workers=workers,
        investigations=investigations,
        kills=kills,
        pauses=pauses,
        silences=silences,
        cancellations=CANCELLATIONS,
        questions=QUESTIONS,
    )
    with progress.live():
        say = progress.within("first scene")
        say("SELECT then UPDATE, two workers, one investigation")
        scene = await play(directory / "scene", seed, plan.questions[0])
        cases = [
            await run_arm(arm, plan, directory / arm.name, progress.within(arm.name))
            for arm in arm_order(chosen, seed)
        ]
    _note(directory, seed, arms, plan, time.monotonic() - began)
    return _report(directory, scene, cases, console)


def check(directory: Path) -> int:
    """Judge and measure again what an earlier comparison left. Returns the exit code.

    Raises `BadInput` when `directory` holds no complete comparison.
    """
    try:
        experiment = json.loads((directory / "experiment.json").read_text())
        cases = [Case.read(directory / name) for name in experiment["arms"]]
        scene = paid(Ledger.read(directory / "scene" / "ledger.jsonl"))
    except (OSError, ValueError, KeyError) as error:
        raise BadInput(f"{directory}: not the results of a whole comparison: {error}") from error
    return _report(directory, scene, cases, Console())


def _report(directory: Path, scene: Paid, cases: Sequence[Case], console: Console) -> int:
    experiment = json.loads((directory / "experiment.json").read_text())
    order = experiment["arms"]
    cases = sorted(cases, key=lambda case: order.index(case.evidence.arm))
    found = [_judged(case) for case in cases]
    report = Report(
        experiment["seed"], experiment["environment"], scene, found, experiment["seconds"]
    )
    (directory / "results.json").write_text(json.dumps(asdict(report), indent=1, default=str))
    (directory / "summary.md").write_text(to_markdown(report))
    (directory / "summary.csv").write_text(to_csv(found))
    (directory / "junit.xml").write_text(to_junit(found))
    (directory / "report.html").write_text(to_html(report, cases))
    to_terminal(report, console)
    console.print(f"\nEverything is in {directory}", soft_wrap=True)
    return EXIT_CODES[_overall(scene, found)]


def _checked(
    arms: Sequence[str],
    workers: int,
    investigations: int,
    kills: int,
    pauses: int,
    silences: int,
) -> list[Arm]:
    """The arms. Raises `BadInput` for what cannot work."""
    if not arms or len(set(arms)) != len(arms):
        raise BadInput(f"expected different arms, found: {', '.join(arms) or 'none'}")
    for name, value, least in (
        ("workers", workers, 2),
        ("investigations", investigations, 1),
        ("kills", kills, 0),
        ("pauses", pauses, 0),
        ("silences", silences, 0),
    ):
        if value < least:
            raise BadInput(f"{name}: expected at least {least}, found {value}")
    return [find_arm(name) for name in arms]


def _directory(results: Path, seed: int) -> Path:
    """A new directory for this comparison, and `latest` beside it."""
    home = results / "compare"
    directory = home / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{seed}"
    try:
        directory.mkdir(parents=True)
        fresh = home / f".latest-{os.getpid()}"
        fresh.symlink_to(directory.name)
        fresh.replace(home / "latest")
    except OSError as error:
        raise BadInput(f"results cannot be written to {home}: {error}") from error
    return directory


def _judged(case: Case) -> ArmResult:
    server = {name: str(value) for name, value in case.evidence.server.items()}
    pressure = case.evidence.cpu_pressure
    return ArmResult(case.evidence.arm, tuple(judge(case)), measure(case), server, pressure)


def _overall(scene: Paid, results: Sequence[ArmResult]) -> Outcome:
    verdicts = [verdict.outcome for result in results for verdict in result.verdicts]
    return worst([*verdicts, Outcome.PASS if scene.twice else Outcome.UNKNOWN])


def _note(directory: Path, seed: int, arms: Sequence[str], plan: Plan, seconds: float) -> None:
    """Freeze what the experiment was, beside its evidence."""
    experiment = {
        "seed": seed,
        "arms": list(arms),
        "seconds": round(seconds, 1),
        "environment": describe(),
        "settings": {name: dict(find_arm(name).env) for name in arms},
        "plan": asdict(plan),
    }
    (directory / "experiment.json").write_text(json.dumps(experiment, indent=1))
