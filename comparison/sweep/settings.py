"""An arm with another lease, and everything that goes with it."""

from __future__ import annotations

from dataclasses import replace

from comparison.arms import Arm
from two_workers import BadInput

BEATS = 4
"""Heartbeats in a lease."""
LEAST, MOST = 1.0, 600.0  # seconds


def with_lease(arm: Arm, lease: float) -> Arm:
    """`arm` with a lease of so many seconds and a heartbeat every quarter of it.

    Raises `BadInput` for a lease that no engine can hold, and for an arm whose heartbeats do not
    follow a setting.
    """
    if not LEAST <= lease <= MOST:
        raise BadInput(f"--lease {lease:g}: expected {LEAST:g} to {MOST:g} seconds")
    gap = lease / BEATS
    match arm.engine, arm.env.get("TEMPORAL_VERSION_ARM"):
        case "hand_rolled", _:
            # A worker trusts a lease until a little before its end; of a short one, a little less.
            env = {
                "HAND_ROLLED_LEASE_TTL": f"{lease:g}",
                "HAND_ROLLED_HEARTBEAT_INTERVAL": f"{gap:g}",
                "HAND_ROLLED_LEASE_MARGIN": f"{min(0.5, lease / 8):g}",
            }
        case "story", _:
            env = {"STORY_LEASE": f"{lease:g}", "STORY_HEARTBEAT_INTERVAL": f"{gap:g}"}
        case "temporal", "tuned" | "server":
            env = {
                "TEMPORAL_VERSION_HEARTBEAT_TIMEOUT": f"{lease:g}",
                "TEMPORAL_VERSION_HEARTBEAT_THROTTLE": f"{gap:g}",
            }
        case _:
            raise BadInput(
                f"arm {arm.name!r} leaves its heartbeats to the SDK's defaults, so they do not "
                "follow the lease; expected hand_rolled, story, temporal+tuned or temporal+server"
            )
    return replace(arm, timeout=lease, gap=gap, env={**arm.env, **env})


def with_room(arm: Arm, runs: int) -> dict[str, str]:
    """The variable that gives a worker of `arm` room for so many runs at a time."""
    name = {"hand_rolled": "HAND_ROLLED", "story": "STORY", "temporal": "TEMPORAL_VERSION"}
    return {f"{name[arm.engine]}_CONCURRENCY": str(runs)}
