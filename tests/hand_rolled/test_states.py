"""The diagram in STATES.md against what the statements do, from every state."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import hand_rolled
from hand_rolled import operations
from hand_rolled.lease import LeaseLost
from tests.hand_rolled.bench import Hand, Held, Store
from tests.hand_rolled.test_lifecycle import in_state
from two_workers import BadInput, RunClosed, RunState

Edge = tuple[str, str, str]
Action = Callable[[Store, str, Held | None], Awaitable[object]]


def diagram() -> set[Edge]:
    text = (Path(hand_rolled.__file__).parent / "STATES.md").read_text()
    return {
        (source, target, label)
        for source, target, label in re.findall(r"^ +(\S+) --> (\S+) : (\w+)$", text, re.MULTILINE)
        if source != "[*]"
    }


async def crash(store: Store, run_id: str, free: int = 5) -> None:
    await store.expire(run_id)
    await (await store.hand()).reclaim(free)


async def suspect(store: Store, run_id: str, held: Held | None) -> None:
    await store.rows("UPDATE runs SET crashes = 1 WHERE run_id = %s", run_id)
    await crash(store, run_id)


async def poison(store: Store, run_id: str, held: Held | None) -> None:
    await store.rows(
        "UPDATE runs SET lease_alone = true, solo_crashes = 2 "
        "WHERE run_id = %s AND status = 'running'",
        run_id,
    )
    await crash(store, run_id)


def owner(act: Callable[[Held], Awaitable[object]]) -> Action:
    async def by_owner(store: Store, run_id: str, held: Held | None) -> None:
        if held is not None:
            await act(held)

    return by_owner


def after(ask: str, action: Action) -> Action:
    """The action on a running run for which something was requested."""

    async def requested(store: Store, run_id: str, held: Held | None) -> None:
        if (await store.row(run_id))["status"] == "running":
            column = f"{ask}_requested"
            await store.rows(f"UPDATE runs SET {column} = true WHERE run_id = %s", run_id)
            await action(store, run_id, held)

    return requested


async def claim(store: Store, run_id: str, held: Held | None) -> None:
    await (await store.hand()).claim()


async def promote(store: Store, run_id: str, held: Held | None) -> None:
    await store.rows("UPDATE runs SET run_after = now() WHERE status IN ('scheduled', 'waiting')")
    await Hand(store, "anyone").reclaims.promote()


ACTIONS: list[tuple[str, Action]] = [
    ("CLAIM", claim),
    ("RECLAIM", lambda store, run_id, held: crash(store, run_id)),
    ("RECLAIM", suspect),
    ("RECLAIM", poison),
    ("FINISH", owner(lambda held: held.ending.finish(result=1))),
    ("FINISH", owner(lambda held: held.ending.finish(failure="x"))),
    ("LEAVE", owner(lambda held: held.ending.leave("pending"))),
    ("LEAVE", owner(lambda held: held.ending.leave("scheduled", wait=60))),
    ("LEAVE", owner(lambda held: held.ending.leave("waiting", signals_seen=0))),
    ("PROMOTE", promote),
    ("SIGNAL", lambda store, run_id, _: store.engine.signal(run_id, "go", 1, signal_id="1")),
    ("CANCEL", lambda store, run_id, _: store.engine.cancel(run_id)),
    ("SUSPEND", lambda store, run_id, _: operations.suspend(store.database, run_id)),
    ("RESUME", lambda store, run_id, _: operations.resume(store.database, run_id)),
]
ACTIONS += [
    (label, after(ask, action))
    for label, action in ACTIONS
    for ask in ("cancel", "suspend")
    if label in ("RECLAIM", "FINISH", "LEAVE")
]


async def what_happens(store: Store) -> set[Edge]:
    seen: set[Edge] = set()
    for label, action in ACTIONS:
        for state in RunState:
            await store.rows("TRUNCATE runs, open_steps, signals, ownership")
            run_id, held = await in_state(store, state)
            before = await store.row(run_id)
            assert before["status"] == state
            try:
                await action(store, run_id, held)
            except (LeaseLost, BadInput, RunClosed):
                continue
            row = await store.row(run_id)
            moved = (row["status"], row["lease_generation"]) != (state, before["lease_generation"])
            if moved:
                seen.add((state.value, row["status"], label))
    return seen


async def test_the_diagram_is_what_the_statements_do(store: Store) -> None:
    assert await what_happens(store) == diagram()
