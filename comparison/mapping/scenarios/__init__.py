"""Short runs on both engines with real servers and real worker processes.

Each scenario is the evidence of one or more concepts. `run` carries one out and returns what was
seen; the questions of the quiz and the removed lines of `break` are about the same scenarios.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from comparison.mapping.scenarios import failure, limits, steering, takeover
from comparison.mapping.scenarios.bench import Bench
from two_workers import BadInput


@dataclass(frozen=True)
class Scenario:
    """A scenario, and the settings that it needs beside the common ones (seconds)."""

    carry_out: Callable[[Bench], Awaitable[None]]
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.carry_out.__name__

    @property
    def title(self) -> str:
        """What happens, in a line."""
        return (self.carry_out.__doc__ or "").partition("\n")[0]


# Long compared with what a busy machine does to a process, short compared with a reader's patience.
COMMON = {
    "HAND_ROLLED_LEASE_TTL": "4",
    "HAND_ROLLED_HEARTBEAT_INTERVAL": "0.5",
    "HAND_ROLLED_POLL_INTERVAL": "0.1",
    "HAND_ROLLED_CRASH_DETECTION": "false",
    "TEMPORAL_VERSION_ARM": "tuned",
    "TEMPORAL_VERSION_HEARTBEAT_TIMEOUT": "4",
    "TEMPORAL_VERSION_HEARTBEAT_THROTTLE": "0.5",
}

_ALL = (
    Scenario(takeover.race),
    Scenario(takeover.pause),
    Scenario(takeover.kill),
    Scenario(
        takeover.stuck,
        {"HAND_ROLLED_PROGRESS_TIMEOUT": "3", "TEMPORAL_VERSION_PROGRESS_TIMEOUT": "3"},
    ),
    Scenario(steering.cancel),
    Scenario(steering.boundary),
    Scenario(steering.signal),
    Scenario(steering.stop),
    Scenario(steering.atomic),
    Scenario(failure.retry),
    Scenario(
        failure.poison,
        {
            "HAND_ROLLED_MAX_CRASHES": "2",
            "HAND_ROLLED_CRASH_BACKOFF": "0.2",
            "TEMPORAL_VERSION_MAX_LOSSES": "3",
        },
    ),
    Scenario(failure.deploy),
    Scenario(limits.limits),
    Scenario(limits.budget),
    Scenario(limits.fairness, {"TEMPORAL_VERSION_ARM": "server"}),
    Scenario(limits.overload),
)
SCENARIOS = {scenario.name: scenario for scenario in _ALL}


def find_scenario(name: str) -> Scenario:
    """Raises `BadInput` with the names that exist."""
    if name not in SCENARIOS:
        raise BadInput(f"unknown scenario {name!r}; known: {', '.join(SCENARIOS)}")
    return SCENARIOS[name]
