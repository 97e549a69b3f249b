"""Runs in a wanted state, and a count of what is there at once."""

from __future__ import annotations

from hand_rolled import operations
from tests.hand_rolled.bench import Held, Store

OPEN = ["pending", "scheduled", "waiting", "suspended"]
FINAL = ["succeeded", "failed", "cancelled"]


async def in_state(store: Store, state: str) -> tuple[str, Held | None]:
    run_id = await store.enqueue()
    if state == "pending":
        return run_id, None
    if state in ("suspended", "cancelled"):
        await (
            operations.suspend(store.database, run_id)
            if state == "suspended"
            else store.engine.cancel(run_id)
        )
        return run_id, None
    held = await (await store.hand()).claim_one()
    match state:
        case "scheduled":
            await held.ending.leave("scheduled", wait=3600)
        case "waiting":
            await held.ending.leave("waiting", signals_seen=0)
        case "succeeded":
            await held.ending.finish(result="done")
        case "failed":
            await held.ending.finish(failure="broken")
    return run_id, held


async def held_runs(store: Store, count: int, **more) -> list[Held]:
    for _ in range(count):
        await store.enqueue(**more)
    return await (await store.hand()).claim(count)


class Count:
    """The most that was ever there at once."""

    def __init__(self) -> None:
        self.now, self.peak = 0, 0

    def change(self, by: int) -> None:
        self.now += by
        self.peak = max(self.peak, self.now)
