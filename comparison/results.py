"""Judge evidence, write the report in all its forms, and say the exit code.

Sources. All else is computed from them, by `two-workers check` at any later time:

    config.json             what was to be done: seed, arms, their settings, samples, plans
    environment.json        on what, with which versions, in how many seconds it was done
    <campaign>/<arm>/       what each campaign left: evidence.json, ledger.jsonl, logs/, made.json
    scene/, overload/<arm>/ the first scene and, of a full comparison, the overloads

Derived, and replaced whenever they are judged again:

    history.jsonl           every campaign's calls, claims, records, cancellations and ends in time
    faults.jsonl            every fault: planned, struck, confirmed, healed; what it hit
    results.json            every figure and verdict, with the raw samples under `measures`
    summary.md, summary.csv, junit.xml, report.html
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from rich.console import Console

from comparison.arms import find_arm
from comparison.checks import judge
from comparison.environment import describe, together
from comparison.evidence import Case
from comparison.experiment import (
    CONFIG,
    EARLIER,
    ENVIRONMENT,
    Noted,
    Part,
    first_problem,
    not_whole,
    read_noted,
)
from comparison.files import to_csv, to_junit
from comparison.history import Campaign, by_arm, faults, history
from comparison.judgement import Judgement, read_judgement
from comparison.ledger import Ledger
from comparison.measures import measure
from comparison.measures import pool as pool_measures
from comparison.overloads import read_overloads
from comparison.page.page import to_html
from comparison.plan import Plan
from comparison.render import Report, to_markdown, to_terminal
from comparison.report import ArmResult, rows
from comparison.scene import paid
from comparison.verdicts import EXIT_CODES
from comparison.verdicts import pool as pool_verdicts

MADE = "made.json"
"""Beside each part's evidence: its environment and its seconds. Parts may be made days apart."""
_REST = {"commit": "not noted"}  # of a part that noted nothing, being older than this note


def note_part(place: Path, seconds: float) -> None:
    """Keep with the evidence under `place` what made it, and how long that took."""
    made = Part(environment=describe(), seconds=round(seconds, 1))
    (place / MADE).write_text(made.model_dump_json(indent=1))


def note(directory: Path, arms: Sequence[str], campaigns: Mapping[str, Plan]) -> None:
    """Freeze what the experiment is, beside its evidence. `campaigns` are named like folders.

    The environment and the seconds are those of its parts, whoever made them and when.
    """
    names = ["scene", *(f"{name}/{arm}" for name in campaigns for arm in arms)]
    names += [f"overload/{arm}" for arm in arms if (directory / "overload" / arm).exists()]
    stored = {name: directory / name / MADE for name in names}
    parts = {
        name: Part.model_validate_json(place.read_bytes())
        for name, place in stored.items()
        if place.exists()
    }
    silent = [_REST] * (len(names) - len(parts))
    Noted(
        seed=next(iter(campaigns.values())).seed,
        arms=tuple(arms),
        seconds=round(sum(part.seconds for part in parts.values()), 1),
        environment=together([*(part.environment for part in parts.values()), *silent]),
        settings={name: dict(find_arm(name).env) for name in arms},
        campaigns=dict(campaigns),
        parts=parts,
    ).write(directory)


def conclude(directory: Path, console: Console) -> int:
    """Judge, measure and report what is under `directory`. Returns the exit code.

    An earlier report is replaced; what it said otherwise is said. Raises `BadInput`, before
    anything is written, when the directory holds no whole comparison.
    """
    report, campaigns = _read(directory)
    judge = describe()["commit"]
    judgement = Judgement.of(report, judge)
    earlier = read_judgement(directory)
    texts = _texts(_judged_by(judge, report), judgement, by_arm(campaigns))
    with (directory / "history.jsonl").open("w") as lines:
        lines.writelines(history(campaigns))
    with (directory / "faults.jsonl").open("w") as lines:
        lines.writelines(faults(campaigns))
    texts["summary.md"] += f"\n{_guide(directory)}\n"
    for name, text in texts.items():
        (directory / name).write_text(text)
    to_terminal(report, console)
    if earlier is not None:
        console.print()
        for line in judgement.against(earlier):
            console.print(line, highlight=False, markup=False, soft_wrap=True)
    console.print(f"\nEverything is in {directory}", soft_wrap=True)
    console.print(_guide(directory), style="dim", highlight=False, soft_wrap=True)
    return EXIT_CODES[judgement.outcome]


def _guide(directory: Path) -> str:
    """Which of the files to open for what, in a line."""
    noted, planned = (
        f"{CONFIG} and {ENVIRONMENT}",
        f"{CONFIG} what was planned, {ENVIRONMENT} on what",
    )
    if (directory / EARLIER).exists():
        noted, planned = EARLIER, f"{EARLIER} what was planned and on what"
    return (
        "report.html is the page; history.jsonl says what happened, faults.jsonl what was broken, "
        f"{planned}; results.json has every figure and every sample. The evidence is {noted} and "
        "what is in the folders; all else follows from it, and `two-workers check` writes it anew."
    )


def load(directory: Path) -> Report:
    """The report on what is under `directory`, judged and measured now. Raises `BadInput`."""
    refuse_strangers(directory)
    return _read(directory)[0]


def refuse_strangers(directory: Path) -> None:
    """Raises `BadInput` when evidence is there that the experiment does not name: then something
    was taken out of it. (Whoever asks for fewer arms than are there may go on with these.)"""
    noted = read_noted(directory)
    known = {f"{name}/{arm}" for name in (*noted.campaigns, "overload") for arm in noted.arms}
    stored = {
        "/".join(place.relative_to(directory).parts[:2])
        for pattern in ("*/*/evidence.json", "overload/*/overload.json")
        for place in directory.glob(pattern)
    }
    if stored - known:
        raise not_whole(
            directory, f"evidence that it does not name: {', '.join(sorted(stored - known))}"
        )


def _judged_by(judge: str, report: Report) -> Report:
    """The report, saying who judged where that is not who made the evidence."""
    made = report.environment["commit"]
    if made == judge:
        return report
    return replace(
        report, environment={**report.environment, "commit": f"{made}, judged by {judge}"}
    )


def _read(directory: Path) -> tuple[Report, list[Campaign]]:
    noted = read_noted(directory)
    try:
        campaigns = [
            Campaign(name, plan, _case(directory / name / arm, arm))
            for arm in noted.arms
            for name, plan in noted.campaigns.items()
        ]
        scene = paid(Ledger.read(directory / "scene" / "ledger.jsonl"))
        overloads = {
            arm: read_overloads(directory, arm, made=f"overload/{arm}" in noted.parts)
            for arm in noted.arms
        }
    except ValidationError as error:
        raise not_whole(directory, f"{error.title}: {first_problem(error)}") from error
    except OSError as error:
        raise not_whole(directory, f"{error.filename}: {error.strerror}") from error
    except ValueError as error:
        raise not_whole(directory, str(error)) from error
    results = [
        replace(judged(cases), overloads=overloads[arm]) for arm, cases in by_arm(campaigns).items()
    ]
    environment = {**dict.fromkeys(describe(), "not noted"), **noted.environment}
    return Report(noted.seed, environment, scene, results, noted.seconds), campaigns


def _case(place: Path, arm: str) -> Case:
    """One campaign. Raises `ValueError` when its evidence is another's, or its ledger was cut."""
    case = Case.read(place)
    if case.evidence.arm != arm:
        raise ValueError(f"{place} holds evidence of {case.evidence.arm}")
    _refuse_cut(case, place)
    if case.crowd is not None:
        _refuse_cut(case.crowd, place / "crowd")
    struck = {key for fault in case.evidence.faults for key in fault.in_flight}
    lost = struck - case.calls.by_key.keys()
    if lost:
        raise ValueError(f"{place}/ledger.jsonl ends before the faults: no call of {min(lost)}")
    return case


def _refuse_cut(case: Case, place: Path) -> None:
    """Raises `ValueError` when the ledger ends before its campaign did."""
    noted, found = case.evidence.ledger_seq, case.calls.ledger.last_seq
    if noted is not None and found < noted:
        raise ValueError(f"{place}/ledger.jsonl was cut: expected {noted} records, found {found}")


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
        blocks=len(cases),
    )


def _texts(
    report: Report, judgement: Judgement, evidence: Mapping[str, Sequence[Case]]
) -> dict[str, str]:
    """The files of the report. All are made before one is written."""
    table = [asdict(row) for row in rows(report.results)]
    everything: dict[str, Any] = {
        **asdict(report),
        "table": table,
        "judged_by": judgement.commit,
        "outcome": judgement.outcome,
    }
    return {
        "results.json": json.dumps(everything, indent=1, default=str),
        "summary.md": to_markdown(report),
        "summary.csv": to_csv(report.results),
        "junit.xml": to_junit(report.results),
        "report.html": to_html(report, evidence),
    }
