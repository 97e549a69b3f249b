"""`two-workers compare`: the scene, then each arm alone, then the report.

    results/compare/<utc>-<seed>/
        scene/                  the first scene's ledger and logs
        block-01/<arm>/         evidence.json, ledger.jsonl, logs/
        experiment.json         seed, arms, plans, settings, environment
        report.html, summary.md, summary.csv, results.json, junit.xml
    results/compare/latest      a link to the newest

A block is one plan carried out on every arm, in random order: arms are compared in pairs, under
the same questions and faults. One block is a quick look; `compare_full` takes as many as a p95
needs, keeps what is done, and goes on where it was interrupted.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from comparison.arms import ARMS, Arm, find_arm
from comparison.plan import Plan, arm_order, make_plan
from comparison.progress import Progress
from comparison.questions import QUESTIONS
from comparison.results import conclude, note
from comparison.scene import play
from comparison.stage import run_arm
from two_workers import BadInput

CANCELLATIONS = 3
"""Of pending runs, and as many of running ones, in each block of each arm."""
FULL_BLOCKS, FULL_FAULTS = 6, 10
"""60 faults of each kind in each arm: one more than a p95 needs."""


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
    chosen = _checked(
        arms,
        workers=(workers, 2),
        investigations=(investigations, 1),
        kills=(kills, 0),
        pauses=(pauses, 0),
        silences=(silences, 0),
    )
    if quick:
        kills, pauses, silences = min(kills, 2), min(pauses, 1), min(silences, 1)
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
    directory = _new_directory(results, seed)
    await _carry_out(directory, chosen, {"block-01": plan})
    return conclude(directory, Console())


async def compare_full(
    *, arms: Sequence[str] = tuple(ARMS), seed: int, results: Path, blocks: int = FULL_BLOCKS
) -> int:
    """As many blocks as a p95 needs, on all arms; takes hours. Returns the exit code of `compare`.

    Interrupted, it goes on with the next block and arm when it is called again with the same seed
    and results. Raises `BadInput`.
    """
    chosen = _checked(arms, blocks=(blocks, 1))
    plans = {
        f"block-{block:02d}": make_plan(
            seed=seed + 1_000_000 * (block - 1),
            workers=3,
            investigations=12,
            kills=FULL_FAULTS,
            pauses=FULL_FAULTS,
            silences=FULL_FAULTS,
            cancellations=CANCELLATIONS,
            questions=QUESTIONS,
        )
        for block in range(1, blocks + 1)
    }
    directory = results / "compare-full" / str(seed)
    directory.mkdir(parents=True, exist_ok=True)
    await _carry_out(directory, chosen, plans)
    return conclude(directory, Console())


def check(directory: Path) -> int:
    """Judge and measure again what an earlier comparison left. Returns the exit code.

    Raises `BadInput` when `directory` holds no whole comparison.
    """
    return conclude(directory, Console())


async def _carry_out(directory: Path, arms: Sequence[Arm], plans: Mapping[str, Plan]) -> None:
    """The scene and every arm of every block that are not under `directory` yet."""
    progress, began = Progress(Console()), time.monotonic()
    with progress.live():
        scene = directory / "scene"
        if not (scene / "played").exists():
            shutil.rmtree(scene, ignore_errors=True)
            progress.within("first scene")("SELECT then UPDATE, two workers, one investigation")
            await play(scene, next(iter(plans.values())).seed, QUESTIONS[0])
            (scene / "played").touch()
        for name, plan in plans.items():
            for arm in arm_order(arms, plan.seed):
                place = directory / name / arm.name
                if (place / "evidence.json").exists():
                    continue
                shutil.rmtree(place, ignore_errors=True)  # half done when it was interrupted
                part = arm.name if len(plans) == 1 else f"{name} {arm.name}"
                await run_arm(arm, plan, place, progress.within(part))
    note(directory, [arm.name for arm in arms], plans, time.monotonic() - began)


def _checked(arms: Sequence[str], **least: tuple[int, int]) -> list[Arm]:
    """The arms; numbers come with the least that can work. Raises `BadInput`."""
    if not arms or len(set(arms)) != len(arms):
        raise BadInput(f"expected different arms, found: {', '.join(arms) or 'none'}")
    for name, (value, minimum) in least.items():
        if value < minimum:
            raise BadInput(f"{name}: expected at least {minimum}, found {value}")
    return [find_arm(name) for name in arms]


def _new_directory(results: Path, seed: int) -> Path:
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
