"""Figures and spans for those who operate this engine. Both are off unless a setting asks for them.

`HAND_ROLLED_PROMETHEUS=127.0.0.1:9465` makes a worker serve OpenMetrics text. Queue depth alone
says little: the age of the oldest pending run says whether work is kept up with, and dead rows
together with the age of the oldest snapshot say why a claim became slow.

`HAND_ROLLED_OTEL=true` makes a span of each step, through the application's OpenTelemetry provider.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from hand_rolled.database import TRANSIENT, Database, Row
from two_workers.errors import BadInput

log = logging.getLogger("hand_rolled.worker")

OPEN_RUNS = """
SELECT status AS state, kind, count(*) AS value,
       extract(epoch FROM clock_timestamp() - min(created_at))::float8 AS oldest
FROM runs WHERE closed_at IS NULL GROUP BY status, kind ORDER BY status, kind
"""

ALIVE = """
SELECT count(*) AS value FROM workers
WHERE stopped_at IS NULL AND dead_at IS NULL
  AND heartbeat_at > clock_timestamp() - interval '1 minute'
"""

POOLS = "SELECT pool, calls, max_calls FROM pools ORDER BY pool"

HEALTH = """
SELECT (SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'runs') AS dead_rows,
       (SELECT coalesce(extract(epoch FROM clock_timestamp() - min(xact_start)), 0)::float8
        FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid()
       ) AS oldest_snapshot
"""

Labels = dict[str, str]


@dataclass
class Family:
    """One metric and its samples."""

    name: str
    kind: str
    help: str
    samples: list[tuple[Labels, float]] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        yield f"# TYPE {self.name} {self.kind}"
        yield f"# HELP {self.name} {self.help}"
        suffix = "_total" if self.kind == "counter" else ""
        for labels, value in self.samples:
            inside = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
            yield f"{self.name}{suffix}{{{inside}}} {value:g}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


async def openmetrics(database: Database, events: Counter[str]) -> str:
    """The figures now, as OpenMetrics text. `events` are what one worker counted."""
    runs = await database.fetch(OPEN_RUNS)
    [alive] = await database.fetch(ALIVE)
    pools = await database.fetch(POOLS)
    [health] = await database.fetch(HEALTH)
    families = [
        Family(
            "two_workers_open_runs", "gauge", "Runs that have not ended.",
            [({"state": row["state"], "kind": row["kind"]}, row["value"]) for row in runs],
        ),
        Family(
            "two_workers_oldest_run_seconds", "gauge", "Age of the oldest of them.",
            [({"state": row["state"], "kind": row["kind"]}, row["oldest"]) for row in runs],
        ),
        Family("two_workers_workers", "gauge", "Workers that beat.", [({}, alive["value"])]),
        Family(
            "two_workers_pool_calls", "gauge", "Calls in flight that hold a slot.",
            [({"pool": row["pool"]}, row["calls"]) for row in pools],
        ),
        Family("two_workers_pool_limit", "gauge", "Slots there are.", _limits(pools)),
        Family(
            "two_workers_dead_rows", "gauge", "Dead rows of the runs table.",
            [({}, health["dead_rows"] or 0)],
        ),
        Family(
            "two_workers_oldest_snapshot_seconds", "gauge", "What keeps vacuum from cleaning up.",
            [({}, health["oldest_snapshot"])],
        ),
        Family(
            "two_workers_worker_events", "counter", "What happened to this worker.",
            [({"event": name}, count) for name, count in sorted(events.items())],
        ),
    ]  # fmt: skip
    return "\n".join([line for it in families for line in it.lines()] + ["# EOF", ""])


def _limits(pools: list[Row]) -> list[tuple[Labels, float]]:
    limited = [row for row in pools if row["max_calls"] is not None]
    return [({"pool": row["pool"]}, row["max_calls"]) for row in limited]


@asynccontextmanager
async def served(database: Database, events: Counter[str]) -> AsyncIterator[None]:
    """Serve the figures over HTTP while the block runs, if a setting asks for it.

    Raises `BadInput` if nothing can listen at that address.
    """
    address = database.settings.prometheus
    if address is None:
        yield
        return

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(10):
                await reader.readuntil(b"\r\n\r\n")
                writer.write(_response(await openmetrics(database, events)))
                await writer.drain()
        except (
            *TRANSIENT,
            OSError,
            asyncio.IncompleteReadError,
            asyncio.LimitOverrunError,
        ) as error:
            log.info("figures not served: %s", error)
        finally:
            writer.close()

    host, _, port = address.rpartition(":")
    try:
        server = await asyncio.start_server(answer, host, int(port))
    except OSError as error:
        raise BadInput(f"HAND_ROLLED_PROMETHEUS={address}: cannot listen there: {error}") from error
    async with server:
        yield


def _response(text: str) -> bytes:
    body = text.encode()
    head = (
        "HTTP/1.1 200 OK\r\n"
        "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


@contextmanager
def step_span(name: str, **attributes: str | int) -> Iterator[None]:
    """A span around one attempt of a step. An error marks it."""
    from opentelemetry import trace

    named = {f"two_workers.{key}": value for key, value in attributes.items()}
    with trace.get_tracer("hand_rolled").start_as_current_span(name, attributes=named):
        yield
