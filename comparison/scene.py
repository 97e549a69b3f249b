"""The story's first scene, on a real PostgreSQL: two workers, one investigation, paid twice.

The race is made certain instead of waited for. The harness holds a lock on the run's row: a plain
SELECT does not mind, so both workers read `pending`; their UPDATEs do, so both wait. Once
pg_stat_activity shows two of them waiting, the lock is let go, and both workers own the run.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.types.json import Json

from comparison.cluster import Cluster
from comparison.ledger import Index, Ledger
from comparison.naive_worker import CREATE
from comparison.world.client import app_env, open_world
from investigation.steps import Question
from two_workers import engine_plugin
from two_workers.engines import server_for

RUN = "run_123"
WAITING = """
    SELECT count(*) FROM pg_stat_activity
    WHERE application_name LIKE 'naive %' AND wait_event_type = 'Lock'
"""
_BOUND = 60.0  # seconds for anything here to happen


@dataclass(frozen=True)
class Paid:
    """What the ledger says about the one investigation. Money in micro-dollars.

    `needed` is what one worker alone would have paid; none of the calls was wrong in itself.
    """

    workers: int
    model_calls: int
    model_calls_needed: int
    tokens: int
    tokens_needed: int
    micro_usd: int
    micro_usd_needed: int

    @property
    def twice(self) -> bool:
        """True when two workers did it and each model call was paid twice."""
        return self.workers == 2 and self.model_calls == 2 * self.model_calls_needed


async def play(directory: Path, seed: int, question: str) -> Paid:
    """Play the scene; its ledger and logs are under `directory` afterwards."""
    plugin = engine_plugin("hand_rolled")  # for its PostgreSQL alone
    with tempfile.TemporaryDirectory(prefix="two-workers-", ignore_cleanup_errors=True) as data:
        async with (
            server_for(plugin, os.environ, directory=Path(data)) as env,
            Cluster.open(directory / "logs") as cluster,
            open_world(cluster, directory / "ledger.jsonl", seed=seed) as world,
            await psycopg.AsyncConnection.connect(env["DATABASE_URL"]) as connection,
        ):
            await connection.execute(CREATE)
            payload = Question(text=question).model_dump(mode="json")
            await connection.execute(
                "INSERT INTO first_scene.runs (run_id, payload) VALUES (%s, %s)",
                (RUN, Json(payload)),
            )
            await connection.commit()
            await _race(cluster, connection, {**env, **app_env(world.url)})
            await world.catch_up()
            return paid(world.ledger)


async def _race(cluster: Cluster, connection: psycopg.AsyncConnection, env: dict[str, str]) -> None:
    """Let both workers SELECT before either can UPDATE; then let them go to their ends."""
    await connection.execute("SELECT FROM first_scene.runs WHERE run_id = %s FOR UPDATE", (RUN,))
    command = [sys.executable, "-m", "comparison.naive_worker"]
    workers = await asyncio.gather(
        *(cluster.start(name, command, env, ready=r"^worker (\S+) ready") for name in "AB")
    )
    async with asyncio.timeout(_BOUND):
        while await _waiting(env) < len(workers):
            await asyncio.sleep(0.02)  # pg_stat_activity has nothing to wait on
        await connection.commit()  # the lock is gone: both UPDATEs succeed
        codes = [await worker.child.wait() for worker in workers]
    if any(codes):
        raise RuntimeError(f"a worker of the first scene failed; see {workers[0].log.parent}")


async def _waiting(env: dict[str, str]) -> int:
    async with await psycopg.AsyncConnection.connect(env["DATABASE_URL"]) as connection:
        row = await (await connection.execute(WAITING)).fetchone()
    assert row is not None
    return int(row[0])


def paid(ledger: Ledger) -> Paid:
    """What the scene cost, and what it would have cost with one owner."""
    model = [c for c in ledger.calls.values() if c.begin.kind == "model" and c.end is not None]
    first = [
        next(call for call in calls if call.end is not None)
        for calls in Index(ledger).by_key.values()
        if calls[0].begin.kind == "model"
    ]
    return Paid(
        workers=len({call.who.worker for call in model}),
        model_calls=len(model),
        model_calls_needed=len(first),
        tokens=sum(c.end.tokens_in + c.end.tokens_out for c in model if c.end),
        tokens_needed=sum(c.end.tokens_in + c.end.tokens_out for c in first if c.end),
        micro_usd=sum(c.end.micro_usd for c in model if c.end),
        micro_usd_needed=sum(c.end.micro_usd for c in first if c.end),
    )
