"""Where a rung is tried: real processes over a real table, and races that are made, not hoped for.

A race needs no luck here. Either the world holds the reply of a call until both workers wait for
one, or the *turnstile* holds every claim after it has chosen its run and before it has written
so: a trigger that waits for an advisory lock of the harness. `pg_stat_activity` says when all
claims stand there. Then they are let go together.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from comparison.cluster import Cluster, Process
from comparison.evidence import Cancellation, FaultRecord
from comparison.faults import takeovers
from comparison.kinds import FaultKind
from comparison.ladder.settings import BOUND
from comparison.ladder.table import CREATE, FORM_VARIABLE, Form, dump_form
from comparison.ledger import Begin, Ledger
from comparison.story import camera
from comparison.world.client import WorldClient
from comparison.world.holds import HoldPoint, Rule
from investigation.steps import Question
from two_workers import RunState

TURNSTILE = """
CREATE FUNCTION turnstile() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtext(TG_TABLE_SCHEMA));
    RETURN NEW;
END $$;
CREATE TRIGGER turnstile BEFORE UPDATE ON runs FOR EACH ROW
    WHEN (NEW.lease_owner IS DISTINCT FROM OLD.lease_owner) EXECUTE FUNCTION turnstile();
"""

_WAITING = """
SELECT count(DISTINCT pid) AS waiting FROM pg_stat_activity
WHERE wait_event_type = 'Lock' AND starts_with(application_name, %(schema)s || '.')
"""

_DEADLINE = 60.0  # seconds; bounds a broken harness, never a measurement
MODEL_CALLS = 3
"""Of one investigation: short, because a ladder has many."""
QUESTION = "Why do checkouts fail?"


@dataclass
class Stage:
    """One form of one rung in one trial: its own tables and its own workers."""

    form: Form
    schema: str
    connection: psycopg.AsyncConnection[DictRow]
    cluster: Cluster
    world: WorldClient
    env: Mapping[str, str]
    settings: dict[str, str] = field(default_factory=dict)
    hired: int = 0
    crew: dict[str, Process] = field(default_factory=dict)
    runs: list[str] = field(default_factory=list)
    refused_starts: int = 0
    holds: list[int] = field(default_factory=list)
    faults: list[FaultRecord] = field(default_factory=list)
    cancellations: list[Cancellation] = field(default_factory=list)
    contended: int = 0
    healed_ns: int = 0
    converged_ns: int | None = None

    # What a scenario does.

    async def start(self, count: int = 1) -> list[str]:
        """Start `count` investigations; returns the ids of those that were let in."""
        return [run for run in [await self._start_one() for _ in range(count)] if run]

    async def worker(self, owner: str) -> Process:
        """A worker process that writes `owner` into the table."""
        self.hired += 1
        command = [sys.executable, "-m", "comparison.ladder", "--owner", owner]
        process = await self.cluster.start(
            f"worker-{self.schema}-{self.hired}",
            [*command, "--schema", self.schema],
            {**self.env, FORM_VARIABLE: dump_form(self.form)},
            ready=r"^worker (\S+) ready",
        )
        self.crew[process.ready.result()] = process
        return process

    async def workers(self, *owners: str) -> list[Process]:
        """Several workers, started at the same time."""
        return list(await asyncio.gather(*(self.worker(owner) for owner in owners)))

    @asynccontextmanager
    async def turnstile(self, claims: int) -> AsyncIterator[None]:
        """Claims made in this block are let go together, once `claims` of them have chosen."""
        key = {"schema": self.schema}
        await self.say("SELECT pg_advisory_lock(hashtext(%(schema)s))", **key)
        try:
            yield
            await self.until(lambda: self._waiting(claims), what=f"{claims} claims in a race")
            self.contended += 1
        finally:
            await self.say("SELECT pg_advisory_unlock(hashtext(%(schema)s))", **key)

    async def hold(self, *, at: HoldPoint = "reply") -> int:
        """Hold the next model call of this stage, before its work or before its reply."""
        rule = {"at": at, "kind": "model", "engine": self.schema}
        self.holds.append(await self.world.arm(Rule.model_validate(rule)))
        return self.holds[-1]

    async def held(self, hold: int) -> Begin:
        """The call that a hold stopped. Raises `TimeoutError` if none comes."""
        call = await self.world.hit(hold, timeout=_DEADLINE)
        if call is None:
            raise TimeoutError(f"{self.schema}: no call came that could be held")
        return call

    def short(self, text: str) -> str:
        """A line of evidence without the stage's name in every name."""
        return text.replace(f"{self.schema}-", "").replace(f"{self.schema}.", "")

    def who(self, process: Process) -> str:
        """A process's id in the ledger and in the camera's notes."""
        return process.ready.result()

    async def strike(self, process: Process, kind: FaultKind, held: Begin | None) -> FaultRecord:
        """Kill or pause a worker at work, or note that its call `hangs`; and confirm it."""
        before = time.monotonic_ns()
        if kind == "kill":
            await process.killed()
        elif kind == "pause":
            await process.stopped()
        after = time.monotonic_ns()
        await self.world.catch_up()
        victim = self.who(process)
        keys = sorted({c.who.key for c in self.world.ledger.in_flight(victim, before)})
        fault = FaultRecord(
            number=len(self.faults) + 1,
            kind=kind,
            point="reply",
            phase=0.0,
            victim=victim,
            held_key=None if held is None else held.identity.key,
            before_ns=before,
            after_ns=after,
            in_flight=tuple(keys),
            landed=bool(keys),
            problem=None if keys else f"{victim} was not at work",
        )
        self.faults.append(fault)
        return fault

    async def until_taken_over(self, fault: FaultRecord) -> bool:
        """Wait until another worker calls what the victim was in; False if none does in time."""

        def look(ledger: Ledger) -> bool | None:
            return set(fault.owned) <= set(takeovers(ledger.calls.values(), fault)) or None

        return await self._within_bound(look)

    async def until_ended(self, count: int, *, within: float = _DEADLINE) -> bool:
        """Wait until `count` runs have ended; False if they have not `within` so many seconds."""

        async def ended() -> bool:
            [row] = await self.say("SELECT count(closed_at) AS ended FROM runs")
            return bool(row["ended"] >= count)

        try:
            await self.until(ended, what=f"{count} runs ended", within=within)
        except TimeoutError:
            return False
        return True

    async def until(self, true: Callable[[], Any], *, what: str, within: float = _DEADLINE) -> None:
        """Wait for a condition in the database. Raises `TimeoutError`."""
        try:
            async with asyncio.timeout(within):
                while not await true():
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise TimeoutError(f"{self.schema}: not {what} within {within:g} s") from None

    async def cancel(self, run: str, owner: Process) -> None:
        """Cancel as this form can: by a row, or only by killing the process that has the run."""
        requested = time.monotonic_ns()
        if self.form.cancel is not None:
            await self.say(self.form.cancel, run_id=run)
        else:
            await self.strike(owner, "kill", None)
        self.cancellations.append(
            Cancellation(
                run=run,
                case="running",
                state_before=RunState.RUNNING,
                requested_ns=requested,
                acknowledged_ns=time.monotonic_ns(),
                ended_ns=None,
                state_after=RunState.RUNNING,
            )
        )

    async def set_limits(self, *, max_active: int | None = None, max_waiting: int = 10**6) -> None:
        """Set the limits that a form may or may not heed."""
        limits = {"max_active": max_active, "max_waiting": max_waiting}
        await self.say(
            "UPDATE limits SET max_active = %(max_active)s, max_waiting = %(max_waiting)s", **limits
        )
        self.settings |= {name: str(value) for name, value in limits.items()}

    async def has_written(self, worker: str) -> bool:
        """True once a step of this worker was recorded, or a write of it refused."""
        query = "SELECT key FROM camera WHERE writer = %(worker)s AND event = 'journal'"
        if await self.say(query, worker=worker):
            return True
        return "its write was refused" in self.crew[worker].log.read_text()

    async def heal_and_converge(self, *, within: float = BOUND, release: bool = True) -> None:
        """Release and resume everything, then wait for every run to end.

        Without `release` a model that never answered goes on not to answer.
        """
        for hold in self.holds if release else ():
            await self.world.release(hold)
        for process in self.crew.values():
            process.resume()
        self.healed_ns = time.monotonic_ns()
        if await self.until_ended(len(self.runs), within=within):
            self.converged_ns = time.monotonic_ns()

    # What a scenario does not see.

    async def say(self, statement: str, **values: Any) -> list[DictRow]:
        """One statement of the harness."""
        cursor = await self.connection.execute(statement, values)
        return await cursor.fetchall() if cursor.description else []

    async def _start_one(self) -> str | None:
        run = f"{self.schema}-run_{len(self.runs) + self.refused_starts + 1}"
        asked = Question(text=QUESTION, max_model_calls=MODEL_CALLS)
        payload = asked.model_dump(mode="json")
        if not await self.say(self.form.start, run_id=run, payload=Jsonb(payload)):
            self.refused_starts += 1
            return None
        self.runs.append(run)
        return run

    async def _waiting(self, claims: int) -> bool:
        [row] = await self.say(_WAITING, schema=self.schema)
        return bool(row["waiting"] >= claims)

    async def _within_bound(self, look: Callable[[Ledger], bool | None]) -> bool:
        with suppress(TimeoutError):
            return await self.world.until(look, timeout=BOUND)
        return False


async def create(connection: psycopg.AsyncConnection[Any], schema: str) -> None:
    """The tables of one stage, with the turnstile and the camera."""
    await connection.execute(f"CREATE SCHEMA {schema}")
    await connection.execute(f"SET search_path = {schema}")
    for script in (CREATE, TURNSTILE, camera.CREATE):
        await connection.execute(script)
