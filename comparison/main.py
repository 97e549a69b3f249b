"""`two-workers compare`: the scene, then each arm alone, then the report.

    results/compare/<utc>-<seed>/
        config.json, environment.json, history.jsonl, faults.jsonl
        results.json, report.html, summary.md, summary.csv, junit.xml
        scene/, block-01/<arm>/ what all of these come from: `comparison.results` says how
    results/compare/latest      a link to the newest that is whole
    results/compare-full/<seed>/
        asked.json              what was asked for: only the same goes on where this was left
        overload/<arm>/         beside all of the above

A block is one plan carried out on every arm, in random order: arms are compared in pairs, under
the same questions and faults. One block is a quick look. `compare_full` plans every fault at
every crash point, as often as a p95 needs where the headlines come from; it deals them out to
several blocks, keeps what is done, and goes on where it was interrupted.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from comparison.arms import ARMS, Arm, find_arm
from comparison.breakers.catalogue import STALL_SECONDS, find_kind, why_not_brought
from comparison.kinds import KINDS, FaultKind
from comparison.overloads import has_overloads, keep_overloads
from comparison.patience import expect_outages
from comparison.plan import Plan, arm_order, grid, make_plan, spread
from comparison.plan import blocks as deal
from comparison.progress import Progress
from comparison.questions import QUESTIONS
from comparison.results import conclude, note, note_part, refuse_strangers
from comparison.scene import play
from comparison.stage import run_arm
from two_workers import BadInput

CANCELLATIONS = 3
"""Of pending runs, and as many of running ones, in each block of each arm."""
FULL_BLOCKS, FULL_SAMPLES = 24, 60
"""60 faults in each cell of each arm: one more than a p95 needs."""
FULL_WORKERS, FULL_INVESTIGATIONS = 3, 12
"""Of each campaign of a full comparison; what `compare` has, if it is not told otherwise."""
SEEDS_APART = 1_000_000
"""Between the seeds of two blocks, so that no block is that of another comparison."""
BETWEEN_FAULTS = 2.5
"""Seconds that a fault takes besides what it is there to show: aiming, and a new worker's start."""
AROUND_FAULTS = 30.0
"""Seconds that a campaign takes besides its faults."""


async def compare(
    *,
    arms: Sequence[str],
    seed: int,
    workers: int,
    investigations: int,
    faults: Mapping[FaultKind, int],
    results: Path,
) -> int:
    """Break real workers on each arm and report. Returns the exit code.

    0 if every verdict passes, 1 if one fails, 2 if one is unknown. `faults` says how many of each
    kind are brought to each arm; they are spread over crash points. Raises `BadInput`.
    """
    chosen = _checked(
        arms,
        workers=(workers, 2),
        investigations=(investigations, 1),
        **{kind: (count, 0) for kind, count in faults.items()},
    )
    plan = make_plan(
        seed=seed,
        workers=workers,
        investigations=investigations,
        cells=spread(faults),
        cancellations=CANCELLATIONS,
        questions=QUESTIONS,
    )
    directory = new_directory(results, seed)
    await carry_out(directory, chosen, {"block-01": plan})
    point_latest_to(directory)
    return conclude(directory, Console())


async def compare_full(
    *,
    arms: Sequence[str] = tuple(ARMS),
    faults: Sequence[str] = tuple(KINDS),
    samples: int = FULL_SAMPLES,
    others: int | None = None,
    seed: int,
    results: Path,
    blocks: int = FULL_BLOCKS,
) -> int:
    """Every fault at every crash point of all arms: hours. Returns the exit code of `compare`.

    `samples` faults for each cell, `others` for those behind no headline, in `blocks` campaigns of
    each arm. Interrupted, it goes on with the next block and arm when it is called again with the
    same seed, results and numbers. Raises `BadInput`.
    """
    chosen = _checked(
        arms, blocks=(blocks, 1), samples=(samples, 1), others=(1 if others is None else others, 1)
    )
    kinds = [find_kind(name) for name in faults]
    plans = {
        f"block-{block:02d}": make_plan(
            seed=seed + SEEDS_APART * (block - 1),
            workers=FULL_WORKERS,
            investigations=FULL_INVESTIGATIONS,
            cells=cells,
            cancellations=CANCELLATIONS,
            questions=QUESTIONS,
        )
        for block, cells in enumerate(deal(grid(samples, kinds, others=others), blocks, seed), 1)
    }
    directory = results / "compare-full" / str(seed)
    asked = {"faults": sorted(kinds), "samples": samples, "others": others, "blocks": blocks}
    _agree(directory, asked)
    _announce(directory, chosen, plans)
    await carry_out(directory, chosen, plans)
    await _overload(directory, chosen)
    note(directory, [arm.name for arm in chosen], plans)
    return conclude(directory, Console())


async def _overload(directory: Path, arms: Sequence[Arm]) -> None:
    """Overload every arm that was not overloaded yet."""
    progress = Progress(Console())
    with progress.live():
        for arm in arms:
            if has_overloads(arm, directory):
                continue
            began = time.monotonic()
            await keep_overloads(arm, directory, progress.within(arm.name))
            note_part(directory / "overload" / arm.name, time.monotonic() - began)


def _agree(directory: Path, asked: Mapping[str, object]) -> None:
    """Note what was asked for; campaigns of another experiment must not be pooled with these."""
    noted = directory / "asked.json"
    if noted.exists() and json.loads(noted.read_text()) != asked:
        raise BadInput(
            f"{directory} holds a part of another comparison ({noted.read_text()}); choose another "
            "--seed or --results, or repeat its numbers"
        )
    directory.mkdir(parents=True, exist_ok=True)
    noted.write_text(json.dumps(asked))


def _announce(directory: Path, arms: Sequence[Arm], plans: Mapping[str, Plan]) -> None:
    """Say how much there is to do, and about how long it takes."""
    seconds, faults, kept = 0.0, 0, 0
    for name, plan in plans.items():
        for arm in arms:
            if (directory / name / arm.name / "evidence.json").exists():
                kept += 1
                continue
            wanted = [f for f in plan.faults if why_not_brought(f.kind, arm) is None]
            faults += len(wanted)
            seconds += AROUND_FAULTS + sum(_expected(arm, fault.kind) for fault in wanted)
    Console().print(
        f"{faults} faults in {len(plans) * len(arms) - kept} campaigns on {len(arms)} arms, about "
        f"{_duration(seconds)}; {kept} campaigns are done already",
        highlight=False,
        soft_wrap=True,
    )


def _expected(arm: Arm, kind: FaultKind) -> float:
    """Seconds that one fault takes."""
    if kind == "stall":
        return STALL_SECONDS + BETWEEN_FAULTS
    lasts = KINDS[kind].takes_away or KINDS[kind].lasting
    return BETWEEN_FAULTS + (arm.middle(kind) if lasts else 0.0)


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def check(directory: Path) -> int:
    """Judge and measure again what an earlier comparison left. Returns the exit code.

    Raises `BadInput` when `directory` holds no whole comparison.
    """
    refuse_strangers(directory)
    return conclude(directory, Console())


async def carry_out(directory: Path, arms: Sequence[Arm], plans: Mapping[str, Plan]) -> None:
    """The scene and every arm of every block that are not under `directory` yet."""
    progress = Progress(Console())
    expect_outages()
    with progress.live():
        scene = directory / "scene"
        if not (scene / "played").exists():
            shutil.rmtree(scene, ignore_errors=True)
            began = time.monotonic()
            progress.within("first scene")("SELECT then UPDATE, two workers, one investigation")
            await play(scene, next(iter(plans.values())).seed, QUESTIONS[0])
            note_part(scene, time.monotonic() - began)
            (scene / "played").touch()
        for name, plan in plans.items():
            for arm in arm_order(arms, plan.seed):
                place = directory / name / arm.name
                if (place / "evidence.json").exists():
                    continue
                shutil.rmtree(place, ignore_errors=True)  # half done when it was interrupted
                part = arm.name if len(plans) == 1 else f"{name} {arm.name}"
                began = time.monotonic()
                await run_arm(arm, plan, place, progress.within(part))
                note_part(place, time.monotonic() - began)
    note(directory, [arm.name for arm in arms], plans)


def _checked(arms: Sequence[str], **least: tuple[int, int]) -> list[Arm]:
    """The arms; numbers come with the least that can work. Raises `BadInput`."""
    if not arms or len(set(arms)) != len(arms):
        raise BadInput(f"expected different arms, found: {', '.join(arms) or 'none'}")
    for name, (value, minimum) in least.items():
        if value < minimum:
            raise BadInput(f"{name}: expected at least {minimum}, found {value}")
    return [find_arm(name) for name in arms]


def new_directory(results: Path, seed: int) -> Path:
    """A new directory for this comparison."""
    home = results / "compare"
    directory = home / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{seed}"
    try:
        directory.mkdir(parents=True)
    except OSError as error:
        raise BadInput(f"results cannot be written to {home}: {error}") from error
    return directory


def point_latest_to(directory: Path) -> None:
    """Let `latest` beside `directory` lead to it. Only once it is whole: `check` refuses others."""
    fresh = directory.parent / f".latest-{os.getpid()}"
    fresh.symlink_to(directory.name)
    fresh.replace(directory.parent / "latest")
