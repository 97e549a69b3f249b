"""Climb the ladder: try every rung in both forms, and see that the checks convict the right one.

One server and one world for all; each trial has tables and workers of its own. A rung stands when
its broken form was convicted in every trial, and its fixed form passed the same check in every
trial and was convicted by no check at all. Anything else is a defect, of the rung or of the check,
and ends with exit code 1.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

import psycopg
from psycopg.rows import dict_row

from comparison.checks import judge
from comparison.cluster import Cluster
from comparison.evidence import Clock
from comparison.ladder.rung import Rung
from comparison.ladder.stage import Stage, create
from comparison.ladder.trial import Bill, Trial, bill, collect
from comparison.story.adapter.plugin import PLUGIN
from comparison.verdicts import Outcome, Verdict
from comparison.world.client import WorldClient, app_env, open_world
from two_workers.engines import server_for

AT_A_TIME = 4
"""Trials that run at the same time: most of each is waiting for a lease to end."""
LATENCY = (0.03, 0.06)
"""Seconds that a call to the world takes."""

FormName: TypeAlias = Literal["broken", "fixed"]
Say = Callable[[str], None]


@dataclass(frozen=True)
class Tried:
    """One trial of one form: what its check said, what else convicted it, and the bill."""

    form: FormName
    verdict: Verdict
    convicted_by: tuple[str, ...]
    bill: Bill
    stranded: int
    refused_starts: int


@dataclass(frozen=True)
class Climbed:
    """All trials of one rung."""

    rung: Rung
    tried: tuple[Tried, ...]

    def of(self, form: FormName) -> list[Tried]:
        return [tried for tried in self.tried if tried.form == form]

    @property
    def defect(self) -> str | None:
        """Why the rung does not stand, or None."""
        for tried in self.of("broken"):
            if tried.verdict.outcome is not Outcome.FAIL:
                return f"{tried.verdict.invariant} missed the broken form: {tried.verdict.detail}"
        for tried in self.of("fixed"):
            if tried.verdict.outcome is not Outcome.PASS:
                return f"{tried.verdict.invariant} on the fixed form: {tried.verdict.detail}"
            if tried.convicted_by:
                return f"{', '.join(tried.convicted_by)} convicted the fixed form"
        return None


@dataclass(frozen=True)
class Ground:
    """What all trials stand on."""

    cluster: Cluster
    world: WorldClient
    env: Mapping[str, str]
    clock: Clock
    logs: Path


async def climb(
    rungs: Sequence[Rung], directory: Path, say: Say, *, trials: int | None = None
) -> list[Climbed]:
    """Try each of `rungs`, `trials` times or as often as it says. Results go to `directory`."""
    async with _ground(directory) as ground:
        places = asyncio.Semaphore(AT_A_TIME)

        async def one(rung: Rung, form: FormName, number: int) -> Tried:
            async with places:
                return await _try(ground, rung, form, number)

        async def all_of(rung: Rung) -> Climbed:
            count = trials or rung.trials
            forms: tuple[FormName, ...] = ("broken", "fixed")
            jobs = [
                group.create_task(one(rung, form, number))
                for form in forms
                for number in range(1, count + 1)
            ]
            climbed = Climbed(rung, tuple([await job for job in jobs]))
            say(f"rung {rung.number}: {climbed.defect or 'stands'}")
            return climbed

        async with asyncio.TaskGroup() as group:
            climbing = [group.create_task(all_of(rung)) for rung in rungs]
        climbed = [one_rung.result() for one_rung in climbing]
    _write(climbed, directory)
    return climbed


async def _try(ground: Ground, rung: Rung, form: FormName, number: int) -> Tried:
    schema = f"ladder_{rung.number:02d}_{form}_{number}_{os.getpid()}"
    async with await psycopg.AsyncConnection.connect(
        ground.env["DATABASE_URL"], autocommit=True, row_factory=dict_row
    ) as connection:
        await create(connection, schema)
        stage = Stage(
            form=rung.broken if form == "broken" else rung.fixed,
            schema=schema,
            connection=connection,
            cluster=ground.cluster,
            world=ground.world,
            env=ground.env,
        )
        try:
            await rung.scenario(stage)
            trial = await collect(stage, ground.clock, ground.logs)
        except (TimeoutError, RuntimeError) as error:  # a race that was not, a worker that ended
            return _did_not_come_about(form, str(error))
        finally:
            for process in stage.crew.values():
                await process.killed()
            await connection.execute(f"DROP SCHEMA {schema} CASCADE")
    return _judged(rung, form, trial, stage)


def _judged(rung: Rung, form: FormName, trial: Trial, stage: Stage) -> Tried:
    others = [v.invariant for v in judge(trial.case) if v.outcome is Outcome.FAIL]
    ends = trial.case.evidence.ends
    verdict = rung.judge(trial)
    return Tried(
        form=form,
        verdict=replace(verdict, detail=stage.short(verdict.detail)),
        convicted_by=tuple(others),
        bill=bill(trial),
        stranded=sum(not end.state.is_final for end in ends),
        refused_starts=stage.refused_starts,
    )


def _did_not_come_about(form: FormName, problem: str) -> Tried:
    """Without the situation there is no evidence, so neither a conviction nor a pass."""
    rule = "the situation comes about"
    verdict = Verdict("scenario", rule, Outcome.UNKNOWN, times=0, tested=0, detail=problem)
    return Tried(form, verdict, (), Bill(0, 0, 0, 0), stranded=0, refused_starts=0)


@asynccontextmanager
async def _ground(directory: Path) -> AsyncIterator[Ground]:
    logs = directory / "logs"
    with tempfile.TemporaryDirectory(prefix="two-workers-", ignore_cleanup_errors=True) as data:
        async with (
            server_for(PLUGIN, os.environ, directory=Path(data)) as env,
            Cluster.open(logs) as cluster,
            open_world(
                cluster,
                directory / "ledger.jsonl",
                seed=1,
                model_latency=LATENCY,
                tool_latency=LATENCY,
            ) as world,
        ):
            env = {**env, **app_env(world.url)}
            yield Ground(cluster, world, env, Clock.now(), logs)


def _write(climbed: Sequence[Climbed], directory: Path) -> None:
    rungs = [
        {
            "rung": one.rung.number,
            "title": one.rung.title,
            "breaks": one.rung.breaks,
            "holds": one.rung.holds,
            "defect": one.defect,
            "trials": [asdict(tried) for tried in one.tried],
        }
        for one in climbed
    ]
    (directory / "ladder.json").write_text(json.dumps(rungs, indent=1) + "\n")
