"""`two-workers replay DIR`: the experiment of a stored comparison once more, and what differs.

The experiment is repeated, not the schedule: the same seed, questions, faults, crash points and
phases, the same arms under the same settings. Processes and servers keep their own timing, so the
figures differ; how far two runs of one experiment are apart is worth knowing before a change is
held responsible for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from comparison.arms import Arm, find_arm
from comparison.difference import changes
from comparison.environment import describe
from comparison.experiment import read_noted
from comparison.main import carry_out, new_directory, point_latest_to
from comparison.plan import Plan
from comparison.results import conclude
from two_workers import BadInput


@dataclass(frozen=True)
class Experiment:
    """What a stored comparison did, and on what."""

    seed: int
    arms: list[Arm]
    plans: Mapping[str, Plan]
    environment: Mapping[str, str]


def read_experiment(directory: Path) -> Experiment:
    """The experiment noted in `directory`.

    Raises `BadInput` when there is none, when it is of a version that plans otherwise, and when an
    arm has other settings by now: that would be another experiment.
    """
    noted = read_noted(directory)
    arms = [_as_it_was(name, noted.settings[name]) for name in noted.arms]
    return Experiment(noted.seed, arms, noted.campaigns, noted.environment)


def _as_it_was(name: str, settings: Mapping[str, str]) -> Arm:
    arm = find_arm(name)
    for key in sorted({*settings, *arm.env}):
        then, now = settings.get(key, "unset"), arm.env.get(key, "unset")
        if then != now:
            raise BadInput(
                f"{name} was measured with {key}={then} and now has {key}={now}: that would be "
                "another experiment; replay it with the version that made it"
            )
    return arm


async def replay(directory: Path, *, results: Path) -> int:
    """Carry out a stored experiment again and report; then say what differs from the stored one.

    Returns the exit code of `compare`. Raises `BadInput`.
    """
    console = Console()
    experiment = read_experiment(directory)
    console.print(
        "The same experiment, not the same schedule: processes and servers keep their own timing.",
        style="dim",
    )
    again = new_directory(results, experiment.seed)
    await carry_out(again, experiment.arms, experiment.plans)
    point_latest_to(again)
    code = conclude(again, console)
    console.print(f"\nAgainst {directory}", style="bold", soft_wrap=True)
    for line in (*surroundings(experiment.environment, describe()), *changes(directory, again)):
        console.print(f"  {line}", highlight=False, markup=False, soft_wrap=True)
    return code


def surroundings(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """What is not the same around the two: versions, machine, commit."""
    return [
        f"{name}: {then.get(name, 'unknown')} then, {now.get(name, 'unknown')} now"
        for name in sorted({*then, *now})
        if then.get(name) != now.get(name)
    ]
