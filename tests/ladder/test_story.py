"""The story's table, with real workers: what it does right, and what it leaves open."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest

from comparison.arms import find_arm
from comparison.cluster import Cluster, Process
from comparison.engines import plugin_of, worker_command
from comparison.evidence import Clock
from comparison.ledger import Begin
from comparison.story import camera
from comparison.story.adapter.settings import SCHEMA
from comparison.world.client import WorldClient, app_env, open_world
from comparison.world.holds import Rule
from hand_rolled.server import EmbeddedPostgres
from investigation.steps import Question
from two_workers import (
    BadInput,
    Engine,
    Limits,
    Run,
    RunCancelled,
    RunConflict,
    RunFailed,
    RunNotFound,
    RunState,
)

PLUGIN = plugin_of("story")


@dataclass
class Bench:
    """The story's engine, its world, and workers on demand."""

    engine: Engine
    world: WorldClient
    cluster: Cluster
    env: dict[str, str]
    workers: list[Process] = field(default_factory=list)

    async def worker(self) -> Process:
        name = f"worker-{uuid.uuid4().hex[:6]}"
        command = worker_command("story", "investigation.app:APP")
        worker = await self.cluster.start(name, command, self.env, ready=r"^worker (\S+) ready")
        self.workers.append(worker)
        return worker

    async def start(self) -> str:
        question = Question(text="Why do checkouts fail?", max_model_calls=3)
        run = Run(
            run_id=f"run-{uuid.uuid4().hex[:8]}",
            kind="investigation",
            payload=question.model_dump(mode="json"),
        )
        await self.engine.start(run)
        return run.run_id

    async def held(self, run: str) -> tuple[int, Begin]:
        """Hold the reply of the run's next model call, and wait for that call."""
        hold = await self.world.arm(Rule(at="reply", kind="model", run=run))
        call = await self.world.hit(hold, timeout=60)
        assert call is not None
        return hold, call


@pytest.fixture
async def bench(postgres: EmbeddedPostgres, tmp_path: Path) -> AsyncIterator[Bench]:
    env = {"DATABASE_URL": postgres.url(), **find_arm("story").env}
    settings = PLUGIN.settings(env)
    await asyncio.gather(PLUGIN.prepare(settings), PLUGIN.prepare(settings))
    async with (
        Cluster.open(tmp_path / "logs") as cluster,
        open_world(cluster, tmp_path / "ledger.jsonl", seed=1) as world,
        PLUGIN.connect(settings) as engine,
    ):
        bench = Bench(engine, world, cluster, {**env, **app_env(world.url)})
        yield bench
        for worker in bench.workers:  # a drain would wait for runs that no test asks about
            await worker.killed()


async def test_an_investigation_ends_in_a_report_and_each_call_is_made_once(bench: Bench) -> None:
    await bench.worker()
    run = await bench.start()
    report = await bench.engine.result(run, timeout=60)
    assert isinstance(report, dict)
    assert report["answer"]
    keys = [record.key for record in await bench.engine.steps(run)]
    await bench.world.catch_up()
    assert sorted(call.who.key for call in bench.world.ledger.of_run(run)) == sorted(keys)


async def test_a_killed_workers_run_is_resumed_from_its_journal(bench: Bench) -> None:
    victim = await bench.worker()
    run = await bench.start()
    await bench.world.until(
        lambda ledger: len(list(ledger.of_run(run))) > 2 or None, timeout=60
    )  # something is recorded by now
    await victim.killed()
    recorded = {record.key for record in await bench.engine.steps(run)}
    await bench.worker()
    await bench.engine.result(run, timeout=60)
    await bench.world.catch_up()
    again = [
        call.who.key
        for call in bench.world.ledger.of_run(run)
        if call.who.key in recorded and call.who.worker != victim.ready.result()
    ]
    assert recorded
    assert again == []


async def test_a_paused_workers_stale_write_is_accepted(
    bench: Bench, postgres: EmbeddedPostgres
) -> None:
    a = await bench.worker()
    run = await bench.start()
    reply_to_a, call = await bench.held(run)
    await a.stopped()
    reply_to_b = await bench.world.arm(Rule(at="reply", kind="model", key=call.identity.key))
    await bench.worker()
    assert await bench.world.hit(reply_to_b, timeout=60) is not None, "B took over"
    a.resume()
    await bench.world.release(reply_to_a)
    options = f"-c search_path={SCHEMA}"
    async with (
        await psycopg.AsyncConnection.connect(
            postgres.url(), options=options, autocommit=True
        ) as connection,
        asyncio.timeout(60),
    ):
        while not (written := await journal_of(connection, run)):
            await asyncio.sleep(0.02)
        await bench.world.release(reply_to_b)
        notes = await camera.read_notes(connection)
    claims = [claim for claim in camera.ownerships(notes, Clock.now()) if claim.what == run]
    assert [claim.fence for claim in claims] == [(1,), (2,)]
    assert written[0].writer == a.ready.result()
    assert written[0].generation == 1, "after generation 2 had been given away"


async def journal_of(
    connection: psycopg.AsyncConnection[tuple[object, ...]], run: str
) -> list[camera.Note]:
    notes = await camera.read_notes(connection)
    return [note for note in notes if note.run_id == run and note.event == "journal"]


async def test_a_cancelled_run_stops_between_two_steps(bench: Bench) -> None:
    await bench.worker()
    run = await bench.start()
    hold, call = await bench.held(run)
    view = await bench.engine.cancel(run)
    assert (view.state, view.cancel_requested) == (RunState.RUNNING, True)
    await bench.world.release(hold)
    with pytest.raises(RunCancelled):
        await bench.engine.result(run, timeout=60)
    await bench.world.catch_up()
    last = list(bench.world.ledger.of_run(run))[-1]
    assert last.who.key == call.identity.key, "the held step was the last"


async def test_a_run_cancelled_while_pending_is_never_begun(bench: Bench) -> None:
    run = await bench.start()
    await bench.engine.cancel(run)
    await bench.worker()
    with pytest.raises(RunCancelled):
        await bench.engine.result(run, timeout=60)
    await bench.world.catch_up()
    assert list(bench.world.ledger.of_run(run)) == []


async def test_a_run_that_fails_says_why(bench: Bench) -> None:
    await bench.worker()
    run = Run(run_id=f"run-{uuid.uuid4().hex[:8]}", kind="investigation", payload={"txt": "why?"})
    await bench.engine.start(run)
    with pytest.raises(RunFailed, match="text"):
        await bench.engine.result(run.run_id, timeout=60)
    assert (await bench.engine.get(run.run_id)).state is RunState.FAILED


async def test_starting_twice_is_one_run_and_other_content_a_conflict(bench: Bench) -> None:
    run = Run(run_id=f"run-{uuid.uuid4().hex[:8]}", kind="nothing", payload={"n": 1})
    await asyncio.gather(bench.engine.start(run), bench.engine.start(run))
    assert len(await bench.engine.list_runs(kind="nothing")) == 1
    with pytest.raises(RunConflict):
        await bench.engine.start(run.model_copy(update={"payload": {"n": 2}}))
    with pytest.raises(RunNotFound):
        await bench.engine.get("nobody")
    await bench.engine.cancel(run.run_id)


async def test_what_the_story_does_not_have_it_refuses(bench: Bench) -> None:
    with pytest.raises(BadInput, match="no signals"):
        await bench.engine.signal("any", "go", None, signal_id="1")
    with pytest.raises(BadInput, match="no limits"):
        await bench.engine.set_limits(Limits(max_active=1))
    with pytest.raises(BadInput, match="no budgets"):
        await bench.engine.start(Run(run_id="rich", kind="any", budget=5))


def test_bad_settings_are_one_line() -> None:
    with pytest.raises(BadInput, match="DATABASE_URL is not set"):
        PLUGIN.settings({})
    with pytest.raises(BadInput, match="STORY_LEASE"):
        PLUGIN.settings({"DATABASE_URL": "postgresql://x", "STORY_LEASE": "-1"})
