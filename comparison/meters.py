"""What a server counts of its own work, read before and after: the difference is what a load costs.

PostgreSQL says how many transactions it gave a number (those that wrote, heartbeats and polls that
lock a row among them), how much write-ahead log they made, and which tables' rows they changed. The
first two are exact at once. Rows come from the statistics views, which a busy session updates once
a second and an idle one after ten: over a short window, they are too few.

Temporal's dev server publishes the counters of any Temporal server once a second: its `action`
metric, which Temporal's documentation names as the way to estimate what Temporal Cloud would bill
(https://docs.temporal.io/cloud/migrate/estimate-actions), and the requests to its database. Each of
those that write is one transaction of its SQL store.

A server that crashes begins to count at zero again, all of it (Temporal) or in part (PostgreSQL's
rows). So the meter is read right before and right after (`mark`), and what grew is added up over
the readings. Lost is what a Temporal server counted since its last publication: under a second.

What else goes on at a server that is not ours is counted too, and a Temporal server that is not
ours shows no counters: there, only the histories speak (`actions`).
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from itertools import pairwise
from typing import Literal

import httpx
import psycopg
from psycopg.rows import dict_row

from comparison.evidence import Load
from comparison.patience import patiently

Counts = dict[str, float]

WRITES = "write transactions"
TRANSACTIONS = "transactions"
LOG = "log bytes"
ROWS = "rows "
ACTION = "action "
STORE = "store "

PUBLISHED = 1.0
"""Seconds between two publications of a Temporal server's counters."""

# A transaction gets a number when it first writes, or locks a row; one that only reads has none.
COUNTERS = """
    SELECT pg_snapshot_xmax(pg_current_snapshot())::text::float8 AS numbered,
           pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 AS log_bytes,
           (SELECT (xact_commit + xact_rollback)::float8 FROM pg_stat_database
            WHERE datname = current_database()) AS transactions
"""

# `camera` holds the harness's own notes beside the story's table.
CHANGED_ROWS = """
    SELECT relname, sum(n_tup_ins + n_tup_upd + n_tup_del)::float8 AS changed
    FROM pg_stat_user_tables
    WHERE relname <> 'camera'
    GROUP BY relname
"""

SAMPLE = re.compile(r"^(?P<metric>\w+)\{(?P<labels>.*)\} (?P<value>\S+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')
WRITING = ("Create", "Update", "Upsert", "Append", "Delete", "Complete", "Range", "Record", "Put")
# Once for each queue when its first worker comes, whatever runs then come through it.
SET_UP = frozenset({"CreateTaskQueue"})


class Meter:
    """Reads the counters of one server around what is to be measured."""

    def __init__(self, read: Callable[[], Awaitable[Counts]], *, published: bool) -> None:
        """`published`: what `read` gives is as old as the server's last publication."""
        self._read = read
        self._published = published
        self._windows: list[list[Counts]] = []
        self.loads: list[Load] = []

    @asynccontextmanager
    async def during(self, window: Literal["twin", "whole"]) -> AsyncIterator[None]:
        """Count what the server does while the body runs."""
        readings, began = [await self._at_rest()], time.monotonic()
        self._windows.append(readings)
        yield
        self._windows.pop()  # the innermost
        seconds = time.monotonic() - began
        readings.append(await self._at_rest())
        self.loads.append(Load(window=window, seconds=seconds, counts=_grown(*readings)))

    async def mark(self) -> None:
        """Read the counters: right before a server crashes, and as soon as it is back."""
        reading = await patiently(self._read)
        for readings in self._windows:
            readings.append(reading)

    async def over(self, seconds: float) -> Load:
        """Count for so many seconds what a server does that never rests.

        What was published late before is so after, too; so let it be many publications long.
        """
        before, began = await self._read(), time.monotonic()
        await asyncio.sleep(seconds)
        after, took = await self._read(), time.monotonic() - began
        return Load(window="quiet", seconds=took, counts=_grown(before, after))

    async def _at_rest(self) -> Counts:
        """The counters once two publications agree; of a server that never rests, the third."""
        found = await self._read()
        for _ in range(3 if self._published else 0):
            await asyncio.sleep(PUBLISHED)  # there is no event for a publication
            before, found = found, await self._read()
            if found == before:
                break
        return found


def _grown(*readings: Counts) -> Counts:
    """How much each counter has grown from reading to reading; one that fell began at zero."""
    grown: Counts = {}
    for before, after in pairwise(readings):
        for name, value in after.items():
            since = before.get(name, 0.0)
            grown[name] = grown.get(name, 0.0) + (value - since if value >= since else value)
    return {name: value for name, value in sorted(grown.items()) if value}


def meter_of(engine: str, env: Mapping[str, str]) -> Meter:
    """The meter of the server that `env` names; it counts nothing where nothing is published."""
    if engine != "temporal":
        return Meter(partial(_postgres, env["DATABASE_URL"]), published=False)
    url = env.get("TEMPORAL_DEV_SERVER_METRICS")
    return Meter(partial(_temporal, url), published=url is not None)


async def _postgres(url: str) -> Counts:
    async with await psycopg.AsyncConnection.connect(
        url, row_factory=dict_row, autocommit=True
    ) as connection:
        counters = await (await connection.execute(COUNTERS)).fetchone()
        tables = await (await connection.execute(CHANGED_ROWS)).fetchall()
    assert counters is not None
    return {
        WRITES: counters["numbered"],
        LOG: counters["log_bytes"],
        TRANSACTIONS: counters["transactions"],
        **{ROWS + table["relname"]: table["changed"] for table in tables},
    }


async def _temporal(url: str | None) -> Counts:
    if url is None:
        return {}
    async with httpx.AsyncClient() as client:
        return samples((await client.get(url)).text)


def samples(exposition: str) -> Counts:
    """The actions and the writes to the store in what a Temporal server publishes."""
    found: Counts = {WRITES: 0.0}
    for sample in SAMPLE.finditer(exposition):
        labels = dict(LABEL.findall(sample["labels"]))
        operation, value = labels.get("operation", ""), float(sample["value"])
        match sample["metric"]:
            case "action" if labels["namespace"] == "default":
                name = ACTION + labels["action_type"]
                found[name] = found.get(name, 0.0) + value
            case "persistence_requests" if labels["namespace"] != "default":
                continue  # the server's own housekeeping
            case "persistence_requests" | "visibility_persistence_requests":
                if operation.startswith(WRITING) and operation not in SET_UP:
                    found[WRITES] += value
                    found[STORE + operation] = found.get(STORE + operation, 0.0) + value
            case _:
                continue
    return found
