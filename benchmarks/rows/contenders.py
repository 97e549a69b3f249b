"""Who is in the rows about ownership, and with which settings.

`SOON` has settings with which each library that can take over does so within seconds; one that
needs an operator has its defaults. `NOTIFIED` are those that push a cancel at once. `DEFAULTS` is
what a new user gets.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from benchmarks.bench import Bench
from benchmarks.ownership.scene import Contender
from benchmarks.peers.holders import Settings
from benchmarks.rounds import Arena
from two_workers import engine_plugin

OURS, TEMPORAL = "hand_rolled", "temporal_version"
PGQUEUER, PROCRASTINATE, ABSURD, DBOS = "PgQueuer", "procrastinate", "Absurd", "DBOS"


@dataclass(frozen=True)
class Chosen:
    """A holder with settings, and those in words."""

    holder: str
    words: str
    settings: Settings = field(default_factory=dict)


CRASH = Chosen(
    "hand_rolled",
    "lease 60 s, crash detection on",
    {
        "HAND_ROLLED_LEASE_TTL": "60",
        "HAND_ROLLED_HEARTBEAT_INTERVAL": "5",
        "HAND_ROLLED_CRASH_DETECTION": "true",
    },
)
SHORT_LEASE = Chosen(
    "hand_rolled",
    "lease 2 s, crash detection off",
    {"HAND_ROLLED_LEASE_TTL": "2", "HAND_ROLLED_HEARTBEAT_INTERVAL": "0.5"},
)
PUSHED = Chosen(
    "hand_rolled",
    "pushed by NOTIFY, heartbeat every 5 s",
    {"HAND_ROLLED_LEASE_TTL": "60", "HAND_ROLLED_HEARTBEAT_INTERVAL": "5"},
)

SOON: Mapping[str, Chosen] = {
    TEMPORAL: Chosen(
        "temporal",
        "heartbeat timeout 2 s, a beat each 0.5 s",
        {
            "TEMPORAL_VERSION_HEARTBEAT_TIMEOUT": "2",
            "TEMPORAL_VERSION_HEARTBEAT_THROTTLE": "0.5",
        },
    ),
    PGQUEUER: Chosen(
        "pgqueuer",
        "heartbeat_timeout 2 s, dequeue_timeout 0.5 s",
        {"heartbeat_timeout": 2, "dequeue_timeout": 0.5},
    ),
    PROCRASTINATE: Chosen(
        "procrastinate",
        "heartbeat 1 s, stalled after 3 s, its documented task that retries stalled jobs each "
        "second, polling 0.5 s",
        {
            "update_heartbeat_interval": 1,
            "stalled_worker_timeout": 3,
            "fetch_job_polling_interval": 0.5,
            "retry_stalled": "* * * * * *",
        },
    ),
    ABSURD: Chosen(
        "absurd",
        "claim_timeout 2 s, polling 0.1 s, the step calls heartbeat() each 0.5 s",
        {"claim_timeout": 2, "poll_interval": 0.1, "heartbeat": 0.5},
    ),
    DBOS: Chosen("dbos", "an operator resumes the workflow"),
}

NOTIFIED: Mapping[str, Chosen] = {
    PGQUEUER: Chosen("pgqueuer", "by a NOTIFY sent beside its write, not after it"),
    PROCRASTINATE: Chosen("procrastinate", "pushed by NOTIFY"),
}

DEFAULTS: Mapping[str, Chosen] = {
    OURS: Chosen("hand_rolled", "lease 10 s, crash detection off"),
    TEMPORAL: Chosen(
        "temporal",
        "arm `stock`: heartbeat timeout 30 s",
        {"TEMPORAL_VERSION_ARM": "stock"},
    ),
    PGQUEUER: Chosen("pgqueuer", "heartbeat_timeout 30 s, dequeue_timeout 30 s"),
    PROCRASTINATE: Chosen("procrastinate", "nobody asks for stalled jobs"),
    ABSURD: Chosen("absurd", "claim_timeout 120 s; one step without heartbeat()"),
    DBOS: Chosen("dbos", "without Conductor; each executor with an id of its own"),
}


@asynccontextmanager
async def contending(bench: Bench, chosen: Mapping[str, Chosen]) -> AsyncIterator[list[Contender]]:
    """The contenders with their places: a fresh database each, and a server where one is needed."""
    if any(one.holder == "temporal" for one in chosen.values()):
        place = bench.directory / f"temporal-{uuid.uuid4().hex[:8]}"
        async with engine_plugin("temporal").embedded(place, os.environ) as env:
            yield _placed(bench, chosen, env["TEMPORAL_ADDRESS"])
    else:
        yield _placed(bench, chosen, "")


def _placed(bench: Bench, chosen: Mapping[str, Chosen], temporal: str) -> list[Contender]:
    @asynccontextmanager
    async def on_temporal() -> AsyncIterator[str]:
        yield temporal

    def arena(holder: str) -> Arena:
        return on_temporal if holder == "temporal" else bench.server.database

    return [
        Contender(name, one.holder, one.settings, one.words, arena(one.holder))
        for name, one in chosen.items()
    ]
