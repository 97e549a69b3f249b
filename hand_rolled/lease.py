"""How long a claim lasts: the lease, and when a worker's trust in it ends.

The database decides who owns a run; its clock stamps and tests `lease_expires_at`. A worker needs a
second opinion of its own, for the time when the database does not answer: it trusts a lease until

    the moment it *sent* the request that granted it + lease_ttl - lease_margin

on a local clock that also counts the time a machine sleeps. That moment comes before the lease ends
in the database, whatever the network did, so a worker has stopped before a successor starts. It is
checked at each step's beginning; a worker that is paused between the check and the call is the case
that only the fence catches.

What renews a lease is `heartbeat.py`.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", None)


def clock() -> float:
    """Seconds on the local clock for deadlines; counts the sleep of the machine where it can."""
    return time.monotonic() if _BOOTTIME is None else time.clock_gettime(_BOOTTIME)


class LeaseLost(Exception):
    """This worker no longer owns the run. It stops working on it at once and writes nothing."""

    def __init__(self, lease: Lease, why: str) -> None:
        super().__init__(f"{lease.owner} lost {lease.run_id} generation {lease.generation}: {why}")
        self.run_id = lease.run_id
        self.generation = lease.generation


@dataclass
class Standing:
    """False while others may take this worker for dead; see `crash.py`."""

    sure: bool = True


@dataclass(eq=False)
class Lease:
    """This worker's claim on one run. Written by the keeper's thread, read by the worker's."""

    run_id: str
    generation: int
    owner: str
    trusted_until: float
    standing: Standing = field(default_factory=Standing)
    alone: bool = False
    cancel_requested: bool = False
    suspend_requested: bool = False
    hand_over: bool = False
    ending: bool = False
    """Its end is on the way to the database: a heartbeat that no longer finds the run learns
    nothing. What became of it, the answer says."""
    lost: str | None = None

    def remaining(self) -> float:
        """Seconds for which this worker may still act as the owner."""
        return 0.0 if self.lost is not None else self.trusted_until - clock()

    def check(self) -> None:
        """Raise `LeaseLost` unless this worker may act as the owner. Called before each effect."""
        if self.lost is not None:
            raise LeaseLost(self, self.lost)
        if self.remaining() <= 0:
            raise LeaseLost(self, "not renewed in time")

    async def confirmed(self) -> None:
        """Wait until nobody can take this worker for dead, then `check`."""
        while not self.standing.sure:
            self.check()
            await asyncio.sleep(0.01)
        self.check()

    @property
    def interrupted(self) -> bool:
        """True when the run should stop at its next safe boundary."""
        return self.cancel_requested or self.suspend_requested or self.hand_over
