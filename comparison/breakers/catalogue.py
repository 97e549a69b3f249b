"""Every breaker by the name of its fault, and where each can be brought."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from comparison.arms import Arm
from comparison.breakers import network, servers, skew, workers
from comparison.breakers.base import Aim, Breaker, Skipped
from comparison.kinds import KINDS, FaultKind
from comparison.plan import Plan
from two_workers import BadInput

STALL_SECONDS = 8.0
"""Longer than the timeout of the matched arms, and than the stall that hand_rolled puts up with."""
SKEW_SECONDS = 300.0

PLAIN_APP, STALLING_APP = "investigation.app:APP", "comparison.stalling:APP"


def _restarted(aim: Aim) -> Breaker:
    assert aim.scene.server is not None  # no restart is planned of a server that is not ours
    return servers.Restarted(aim.scene.server, aim.scene.meter)


BREAKERS: dict[FaultKind, Callable[[Aim], Breaker]] = {
    "kill": lambda aim: workers.Kill(aim.victim),
    "kill+cancel": lambda aim: workers.Kill(aim.victim),
    "pause": lambda aim: workers.Pause(aim.victim),
    "silence": lambda aim: network.Silence(aim.proxy),
    "mute": lambda aim: network.Silence(aim.proxy, ("to_server",)),
    "deaf": lambda aim: network.Silence(aim.proxy, ("to_client",)),
    "reset": lambda aim: network.Reset(aim.proxy),
    "half-close": lambda aim: network.HalfClose(aim.proxy),
    "cut": lambda aim: network.CutAfterRecord(aim.proxy, aim.scene.request("record")),
    "sessions": lambda aim: servers.SessionsEnded(aim.scene.env["DATABASE_URL"]),
    "restart": _restarted,
    "stall": lambda aim: workers.Stall(aim.victim),
    "drain": lambda aim: workers.Drain(aim.victim),
    "skew": lambda aim: skew.Skew(aim.scene, SKEW_SECONDS),
}


def why_not_brought(kind: FaultKind, arm: Arm, *, ours: bool = True) -> str | None:
    """None when a fault can be brought to an arm here, or why it cannot.

    `ours`: the server is the harness's own. (Whoever named a server may need TLS, whose
    certificate is not a proxy's, and may not want it crashed.)
    """
    if KINDS[kind].postgres and arm.engine == "temporal":
        return "its server knows no such fault"
    if KINDS[kind].ours and not ours:
        return "the server is not ours"
    if kind == "skew":
        try:
            skew.skewed(SKEW_SECONDS, os.environ)
        except Skipped as reason:
            return str(reason)
    return None


def possible(plan: Plan, arm: Arm, say: Callable[[str], None], *, ours: bool) -> Plan:
    """The plan without the faults that cannot be brought to `arm` here; says which and why."""
    reasons = {kind: why_not_brought(kind, arm, ours=ours) for kind in plan.kinds}
    for kind, reason in reasons.items():
        if reason is not None:
            say(f"no {kind}: {reason}")
    return plan.without({kind for kind, reason in reasons.items() if reason is not None})


def worker_app(kinds: Sequence[FaultKind]) -> tuple[str, Mapping[str, str]]:
    """The app that workers must run for such faults to be brought, and its environment."""
    if "stall" not in kinds:
        return PLAIN_APP, {}
    return STALLING_APP, {"STALL_SECONDS": f"{STALL_SECONDS:g}"}


def find_kind(name: str) -> FaultKind:
    """Raises `BadInput` for an unknown fault."""
    for kind in KINDS:
        if kind == name:
            return kind
    raise BadInput(f"unknown fault {name!r}; known: {', '.join(KINDS)}")
