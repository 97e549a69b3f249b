"""The arms: what is compared, in one table of settings.

`hand_rolled` and `temporal+tuned` are the matched pair: the same timeout, the same gap between
heartbeats, the same room for work. Everything else about them is what each engine is. Our own
settings are frozen here, before anything is measured.

`predict` gives the band in which a takeover after a kill should fall if detection works as its
owner says: with timeout T, renewal gap h and poll gap p, a worker that is killed between two
heartbeats is missed between T − h and T later. A measured recovery outside of its band is news;
one inside it is mostly configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from two_workers import BadInput

TIMEOUT, GAP, POLL = 2.0, 0.5, 0.1  # seconds
SLOTS = 4
DISPATCH = 0.3
"""Seconds between having the work and having begun a call for it."""


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One configuration of one engine. Durations in seconds.

    `timeout`, `gap`, `poll` and `backoff` are T, h, p and the least delay before a retry.
    `maintains` says what the owner of such a system looks after.
    """

    name: str
    engine: str
    what: str
    env: Mapping[str, str]
    timeout: float
    gap: float
    poll: float
    backoff: float
    durability: str
    maintains: str
    bands: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def predict(self, kind: str) -> tuple[float, float]:
        """The shortest and longest takeover after a fault of `kind`."""
        law = (self.timeout - self.gap + self.backoff, self.timeout + self.poll + self.backoff)
        low, high = self.bands.get(kind, law)
        return low, high + DISPATCH

    def middle(self, kind: str) -> float:
        """The middle of the predicted band."""
        return sum(self.predict(kind)) / 2


_TABLE = "fsync on: an acknowledged write survives a crash of the machine"
_DEV_SERVER = "the dev server's SQLite file; Temporal itself says: for development and testing only"
_OWN_STORE = "one database, its backups and upgrades; the store's code, SQL and migrations"
_OWN_TEMPORAL = "a Temporal cluster with its database, or a bill from Temporal Cloud; no store code"

_STORY = {
    "STORY_LEASE": f"{TIMEOUT:g}",
    "STORY_HEARTBEAT_INTERVAL": f"{GAP:g}",
    "STORY_POLL_INTERVAL": f"{POLL:g}",
    "STORY_CONCURRENCY": f"{SLOTS}",
}
_HAND_ROLLED = {
    "HAND_ROLLED_LEASE_TTL": f"{TIMEOUT:g}",
    "HAND_ROLLED_HEARTBEAT_INTERVAL": f"{GAP:g}",
    "HAND_ROLLED_POLL_INTERVAL": f"{POLL:g}",
    "HAND_ROLLED_CRASH_DETECTION": "false",
    "HAND_ROLLED_CONCURRENCY": f"{SLOTS}",
}
_TUNED = {
    "TEMPORAL_VERSION_ARM": "tuned",
    "TEMPORAL_VERSION_HEARTBEAT_TIMEOUT": f"{TIMEOUT:g}",
    "TEMPORAL_VERSION_HEARTBEAT_THROTTLE": f"{GAP:g}",
    "TEMPORAL_VERSION_STICKY_TIMEOUT": "1",
    "TEMPORAL_VERSION_CONCURRENCY": f"{SLOTS}",
}

ARMS = {
    arm.name: arm
    for arm in (
        Arm(
            name="story",
            engine="story",
            what="the story's own SQL and a journal: the table that a reader would write next",
            env=_STORY,
            timeout=TIMEOUT,
            gap=GAP,
            poll=POLL,
            backoff=0.0,
            durability=_TABLE,
            maintains="one database, its backups and upgrades; about 100 lines over the SQL",
        ),
        Arm(
            name="hand_rolled",
            engine="hand_rolled",
            what="the PostgreSQL store, lease only",
            env=_HAND_ROLLED,
            timeout=TIMEOUT,
            gap=GAP,
            poll=POLL,
            backoff=0.0,
            durability=_TABLE,
            maintains=_OWN_STORE,
        ),
        Arm(
            name="hand_rolled+crash",
            engine="hand_rolled",
            what="the PostgreSQL store, with crash detection by session lock",
            env={**_HAND_ROLLED, "HAND_ROLLED_CRASH_DETECTION": "true"},
            timeout=TIMEOUT,
            gap=GAP,
            poll=POLL,
            backoff=0.0,
            durability=_TABLE,
            maintains=_OWN_STORE,
            # A survivor sees the freed lock at its next look (100 ms) and waits out a grace of
            # 250 ms; only a pause still has to wait for the lease.
            bands={"kill": (0.25, 0.35 + POLL), "kill+cancel": (0.25, 0.35 + POLL)},
        ),
        Arm(
            name="temporal",
            engine="temporal",
            what="Temporal, documented defaults plus the timeouts that any guide demands",
            env={"TEMPORAL_VERSION_ARM": "stock", "TEMPORAL_VERSION_CONCURRENCY": f"{SLOTS}"},
            timeout=30.0,
            gap=24.0,  # the SDK throttles heartbeats to 0.8 of the timeout
            poll=0.0,
            backoff=1.0,
            durability=_DEV_SERVER,
            maintains=_OWN_TEMPORAL,
        ),
        Arm(
            name="temporal+tuned",
            engine="temporal",
            what="Temporal, timings matched to hand_rolled, waits for cancelled activities",
            env=_TUNED,
            timeout=TIMEOUT,
            gap=GAP,
            poll=0.0,
            backoff=1.0,  # the server's timers do not fire sooner than 1 s after they are made
            durability=_DEV_SERVER,
            maintains=_OWN_TEMPORAL,
        ),
        Arm(
            name="temporal+server",
            engine="temporal",
            what="as temporal+tuned, and the server's timer floor, push cancellation and fairness",
            env={**_TUNED, "TEMPORAL_VERSION_ARM": "server"},
            timeout=TIMEOUT,
            gap=GAP,
            poll=0.0,
            backoff=0.1,
            durability=_DEV_SERVER,
            maintains=_OWN_TEMPORAL,
        ),
    )
}


def find_arm(name: str) -> Arm:
    """Raises `BadInput` for an unknown arm."""
    try:
        return ARMS[name]
    except KeyError:
        raise BadInput(f"unknown arm {name!r}; known: {', '.join(ARMS)}") from None
