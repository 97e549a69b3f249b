"""What the engines themselves have on record, in one shape for both.

hand_rolled keeps an append-only `ownership` table and a `journal` whose rows carry the generation
that wrote them. Temporal keeps a history: of each activity the attempt that was accepted and the
worker that ran it; earlier attempts leave no event, so who owned a step before is known from the
ledger alone. What was refused is known only from the workers' logs, on both engines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.rows import dict_row
from pydantic import JsonValue

from comparison.evidence import Clock, End, Ownership, RefusedWrite, Write
from comparison.ledger import Ledger
from two_workers import Fence

CLAIMS = """
    SELECT run_id, lease_generation, owner, event, reason, at
    FROM ownership
    WHERE event IN ('claimed', 'reclaimed', 'reaped')
    ORDER BY run_id, lease_generation
"""

JOURNAL = """
    SELECT run_id || '/' || batch || '.' || position AS key, lease_generation, worker, recorded_at
    FROM journal
    ORDER BY recorded_at
"""

DURABILITY = """
    SELECT name, setting FROM pg_settings
    WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes', 'server_version')
"""


@dataclass(frozen=True)
class Records:
    """An engine's own account."""

    ownerships: tuple[Ownership, ...]
    writes: tuple[Write, ...]
    refused_writes: tuple[RefusedWrite, ...]
    server: dict[str, JsonValue]


async def collect(
    engine: str,
    env: Mapping[str, str],
    ends: Sequence[End],
    ledger: Ledger,
    clock: Clock,
    logs: Path,
) -> Records:
    """The account of `engine`, on the ledger's clock."""
    if engine == "temporal":
        return Records(
            ownerships=(),
            writes=tuple(_from_steps(ends, ledger, clock)),
            refused_writes=tuple(refusals(logs, TEMPORAL_REFUSAL)),
            server={"store": "SQLite file of the dev server"},
        )
    async with await psycopg.AsyncConnection.connect(
        env["DATABASE_URL"], row_factory=dict_row, autocommit=True
    ) as connection:
        claims = await (await connection.execute(CLAIMS)).fetchall()
        journal = await (await connection.execute(JOURNAL)).fetchall()
        settings = await (await connection.execute(DURABILITY)).fetchall()
    return Records(
        ownerships=tuple(
            Ownership(
                what=row["run_id"],
                fence=(row["lease_generation"],),
                worker=row["owner"],
                since_ns=clock.mono(row["at"]),
                cause=row["event"] if not row["reason"] else f"{row['event']}: {row['reason']}",
            )
            for row in claims
        ),
        writes=tuple(
            Write(
                key=row["key"],
                fence=(row["lease_generation"],),
                worker=row["worker"],
                t_ns=clock.mono(row["recorded_at"]),
            )
            for row in journal
        ),
        refused_writes=tuple(refusals(logs, HAND_ROLLED_REFUSAL)),
        server={row["name"]: row["setting"] for row in settings},
    )


def _from_steps(ends: Sequence[End], ledger: Ledger, clock: Clock) -> Iterator[Write]:
    """Temporal's accepted completions, with the fence under which the ledger saw that attempt."""
    fences: dict[tuple[str, int], Fence] = {
        (call.who.key, call.who.fence[-1]): call.who.fence for call in ledger.calls.values()
    }
    for end in ends:
        for step in end.steps:
            fence = fences.get((step.key, step.attempt))
            if fence is not None:  # a step that calls nothing outside has no place in the ledger
                yield Write(
                    key=step.key,
                    fence=fence,
                    worker=step.worker or "",
                    t_ns=clock.mono(step.recorded_at),
                )


HAND_ROLLED_REFUSAL = re.compile(r"LeaseLost|lost the lease|stale write", re.IGNORECASE)
TEMPORAL_REFUSAL = re.compile(r"Activity not found on completion")


def refusals(logs: Path, pattern: re.Pattern[str]) -> Iterator[RefusedWrite]:
    """Lines in which a worker says that its write was refused."""
    for log in sorted(logs.glob("worker-*.log")):
        worker = log.stem
        for line in log.read_text().splitlines():
            stamp, _, text = line.partition(" ")
            if found := re.match(r"worker (\S+) ready", text):
                worker = found[1]
            if pattern.search(text):
                yield RefusedWrite(worker=worker, t_ns=int(stamp), line=text[:300])
