"""Every breaker by the name of its fault, with what it needs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from comparison.arms import Arm
from comparison.breakers import network, servers, skew, workers
from comparison.breakers.base import Breaker
from comparison.breakers.trial import Situation, break_once
from comparison.evidence import Case
from two_workers import BadInput

STALL_SECONDS = "8"
"""Longer than the timeout of the matched arms."""
SKEW_SECONDS = 300.0


@dataclass(frozen=True)
class Fault:
    """How to bring one fault to an arm. `needs` is the engine's server, if only one kind has it."""

    name: str
    what: str
    make: Callable[[Situation], Breaker]
    needs: str | None = None
    options: Callable[[], Mapping[str, Any]] = dict

    def fits(self, arm: Arm) -> bool:
        """True when this fault exists for the arm's server."""
        return self.needs != "postgres" or arm.engine != "temporal"

    async def bring(self, arm: Arm, directory: Path) -> Case:
        """Bring it once. Raises `Skipped` when it cannot be brought here."""
        return await break_once(arm, self.make, directory, **self.options())


def _everybody() -> Mapping[str, Any]:
    return {"breaks_all": True}


def _stalling() -> Mapping[str, Any]:
    env = {"STALL_SECONDS": STALL_SECONDS}
    return {"app": "comparison.stalling:APP", "worker_envs": (env, env)}


def _skewed() -> Mapping[str, Any]:
    ahead = skew.skewed(SKEW_SECONDS, os.environ)
    return {"worker_envs": (ahead, ahead)}


FAULTS = {
    fault.name: fault
    for fault in (
        Fault(
            "mute",
            "nothing that a worker says reaches its server",
            lambda at: network.OneWay(at.proxy, "to_server"),
        ),
        Fault(
            "deaf",
            "nothing that its server says reaches a worker",
            lambda at: network.OneWay(at.proxy, "to_client"),
        ),
        Fault("reset", "RST on all of a worker's connections", lambda at: network.Reset(at.proxy)),
        Fault(
            "half-close",
            "FIN towards the server on all of a worker's connections",
            lambda at: network.HalfClose(at.proxy),
        ),
        Fault(
            "cut",
            "a step is recorded and committed, and the reply never arrives",
            lambda at: network.CutAfterCommit(at.proxy),
            needs="postgres",
        ),
        Fault(
            "sessions",
            "the database ends the sessions of all workers",
            lambda at: servers.SessionsEnded(at.env["DATABASE_URL"]),
            needs="postgres",
            options=_everybody,
        ),
        Fault(
            "restart",
            "the server crashes and comes back on its data",
            lambda at: servers.Restarted(at.server),
            options=_everybody,
        ),
        Fault(
            "stall",
            f"a worker's event loop stands still for {STALL_SECONDS} s",
            lambda at: workers.Stall(at.victim),
            options=_stalling,
        ),
        Fault("drain", "SIGTERM to a worker at work", lambda at: workers.Drain(at.victim)),
        Fault(
            "idle-pause",
            "SIGSTOP to a worker that waits for work",
            lambda at: workers.IdlePause(at.idle),
        ),
        Fault(
            "skew",
            f"all workers' wall clocks are {SKEW_SECONDS:g} s ahead",
            lambda at: skew.Skew(at.victim),
            options=_skewed,
        ),
    )
}


def find_fault(name: str) -> Fault:
    """Raises `BadInput` for an unknown fault."""
    try:
        return FAULTS[name]
    except KeyError:
        raise BadInput(f"unknown fault {name!r}; known: {', '.join(FAULTS)}") from None
