"""`two-workers explain claim`: the story's statement and its plan, then ours, line by line.

The plans are real: PostgreSQL executes each statement over a temporary copy of the tables, filled
with a backlog, in a transaction that is rolled back. Temporary tables hide the real ones of the
same name, so the statements shown are the very ones that run, and no real run is touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, LiteralString

from hand_rolled.catalogue import Statement, sql_of
from hand_rolled.database import Connection, open_connection
from hand_rolled.settings import Settings
from two_workers.errors import BadInput

TOPICS: dict[str, tuple[str, ...]] = {
    "claim": ("story-claim", "claim", "reclaim", "claim-within-limits"),
    "heartbeat": ("story-heartbeat", "heartbeat"),
    "fence": ("record",),
    "end": ("finish", "leave"),
    "cancel": ("cancel",),
}

# Why a line is as it is: (a fragment of the line, the reason).
NOTES: dict[str, tuple[tuple[str, str], ...]] = {
    "story-claim": (
        ("FROM runs", "locks and claims in one statement: two workers never get the same run"),
        (
            "OR (",
            "no one index serves both halves: it walks all old runs, or sorts the whole backlog",
        ),
        ("lease_expires_at < now()", "now() is frozen at BEGIN: in a long transaction it is late"),
        ("ORDER BY created_at", "running rows are the oldest, so they stand at the head"),
        ("FOR UPDATE SKIP LOCKED", "also skips runs that a foreign key refers to at this moment"),
        ("lease_owner =", "says who, but not which time: no generation, so no fence"),
    ),
    "claim": (
        (
            "AND dead_at IS NULL AND NOT counted",
            "declared dead, or counted by limits since: takes nothing this way",
        ),
        ("FOR SHARE", "its own row: claims of different workers share none"),
        (
            "AS MATERIALIZED (\n    SELECT r.run_id",
            "chosen once: as a plain subquery it may run per row",
        ),
        ("r.status = 'pending' AND r.kind", "exactly the condition of a partial index"),
        ("ORDER BY r.priority, r.ready_at", "exactly the index's order: nothing is sorted"),
        (
            "FOR NO KEY UPDATE OF r SKIP LOCKED",
            "steps over rows being claimed, not over rows referred to",
        ),
        ("lease_generation = r.lease_generation + 1", "the fence: every claim has its own number"),
        ("lease_expires_at = clock_timestamp()", "the database's clock, at this moment"),
        ("INSERT INTO ownership", "append-only: a generation given out twice would fail here"),
    ),
    "reclaim": (
        (
            "w.dead_at IS NOT NULL THEN 'died'",
            "its crash lock was freed: no need to wait for the lease",
        ),
        ("THEN 'outage'", "we had lost the server ourselves: not its owner's fault"),
        (
            "WHEN r.cancel_requested THEN 'cancelled'",
            "a cancelled run ends even if its owner is dead",
        ),
        ("WHEN r.lease_alone", "only crashes while it ran alone can fail a run"),
        (
            "r.lease_expires_at <= statement_timestamp()",
            "stable during the statement, not frozen at BEGIN",
        ),
        ("r.progress_at <=", "alive but stuck: a heartbeat is not progress"),
        (
            "ORDER BY r.lease_expires_at",
            "sorts orphans only; an index on it would slow every heartbeat",
        ),
        (
            "cost = r.cost + r.reserved",
            "what became of calls under way is unknown: the worst is charged",
        ),
    ),
    "claim-within-limits": (
        (
            "CROSS JOIN LATERAL (\n        SELECT r.run_id FROM runs r",
            "asked of one tenant after the other, not of all: a join would be planned otherwise",
        ),
        ("WHERE t.active <", "checked again after the lock, on the newest row: the count is exact"),
        (
            "ORDER BY line.last_claimed_at",
            "tenants take turns: who floods the queue starves nobody",
        ),
        (
            "(SELECT count(*) FROM turn) > 0",
            "reads all of `turn` first: tenants are locked before the total",
        ),
        ("holds_slot = true", "marks what was counted, so that it is counted down exactly once"),
    ),
    "story-heartbeat": (
        ("AND lease_owner =", "a restarted worker of the same name keeps its zombie's runs alive"),
    ),
    "heartbeat": (
        (
            "WHERE worker_id = %(worker)s AND dead_at IS NULL",
            "no row at all: we were declared dead",
        ),
        ("lease.generation = r.lease_generation", "this claim, not a later one by the same name"),
        ("ORDER BY r.run_id", "one lock order: no deadlock with others that lock several runs"),
        ("renewed.cancel_requested", "brings cancellations home, whether the push came or not"),
    ),
    "record": (
        (
            "UPDATE runs r",
            "locks the row and checks the fence again after any wait: no gap for a takeover",
        ),
        ("r.lease_generation = %(generation)s", "18 is refused once 19 was given out"),
        (
            "NOT EXISTS (SELECT FROM journal",
            "sent again after a lost answer, it charges nothing twice",
        ),
        ("DELETE FROM reservations", "settled in the same statement"),
    ),
    "finish": (
        ("CASE WHEN cancel_requested", "an acknowledged cancellation beats a finish"),
        ("FOR NO KEY UPDATE", "the fence, as a lock"),
    ),
    "leave": (
        ("signals = %(signals_seen)s", "compares a counter: asking for a signal would miss one"),
        ("WHEN suspend_requested", "what an operator asked for"),
    ),
    "cancel": (
        (
            "CASE status WHEN 'running' THEN 'running'",
            "an owned run ends at its owner's next boundary",
        ),
        ("status NOT IN", "what has ended stays as it is"),
    ),
}

COPY_TABLES: tuple[LiteralString, ...] = tuple(
    f"CREATE TEMPORARY TABLE {table} (LIKE public.{table} INCLUDING ALL) ON COMMIT DROP"
    for table in (
        "runs", "workers", "limits", "tenants", "active_total", "ownership", "journal",
        "open_steps", "signals", "pools", "pool_calls", "reservations",
    )
)  # fmt: skip

FILL: tuple[LiteralString, ...] = (
    """
    INSERT INTO runs (run_id, kind, tenant, priority, payload, created_at, ready_at,
                      status, closed_at, lease_owner, lease_generation, lease_expires_at,
                      heartbeat_at, progress_at)
    SELECT state.status || '-' || n, 'sample', 'tenant-' || n %% 20, 3, '{}',
           state.since + n * interval '1 ms', state.since + n * interval '1 ms', state.status,
           CASE state.status WHEN 'succeeded' THEN now() END,
           CASE state.status WHEN 'running' THEN 'other' END,
           (state.status = 'running')::int,
           CASE state.status WHEN 'running' THEN now() + interval '1 hour' END, now(), now()
    FROM (VALUES ('running', %(backlog)s / 100, now() - interval '3 days'),
                 ('succeeded', %(backlog)s, now() - interval '2 days'),
                 ('pending', %(backlog)s, now() - interval '1 day')) AS state (status, runs, since),
         LATERAL generate_series(1, state.runs) n
    """,
    """
    INSERT INTO workers (worker_id, process, host, pid, kinds, versions, concurrency, counted)
    SELECT name, name, 'localhost', 1, '{sample}', '{1}', 8, %(counted)s
    FROM unnest('{me,other}'::text[]) name
    """,
    "INSERT INTO tenants (tenant) SELECT 'tenant-' || n FROM generate_series(0, 19) n",
    "INSERT INTO limits (counted, max_active_per_tenant) VALUES (%(counted)s, 3)",
    "INSERT INTO active_total DEFAULT VALUES",
    "ANALYZE runs, workers, tenants",
)

SAMPLE: dict[str, Any] = {
    "worker": "me",
    "kind": "sample",
    "code": "1",
    "suspect": False,
    "want": 8,
    "ttl": timedelta(seconds=60),
    "known": [],
    "kinds": ["sample"],
    "codes": ["1"],
    "free": 8,
    "in_contact": True,
    "progress_timeout": None,
    "max_takeaways": 5,
    "max_crashes": 3,
    "suspect_after": 2,
    "crash_backoff": timedelta(seconds=1),
    "run_id": "running-1",
    "generation": 1,
    "run_ids": [f"running-{n}" for n in range(1, 9)],
    "generations": [1] * 8,
    "batch": 0,
    "position": 0,
    "outcome": "null",
    "fingerprint": "sample:0",
    "succeeded": True,
    "attempt": 1,
    "cost": 0,
    "process": "me",
    "target": "succeeded",
    "result": "null",
    "failure": None,
    "wait": None,
    "signals_seen": None,
    "mismatch": None,
    "reason": "",
}
"""Values for every statement in TOPICS."""

OF_AN_OWNER: dict[str, dict[str, Any]] = {
    "story-heartbeat": {"worker": "other"},
    "heartbeat": {"worker": "other"},
    "record": {"worker": "other"},
    "finish": {"worker": "other"},
    "leave": {"worker": "other", "target": "pending"},
}
"""Statements of an owner are explained for one of its runs."""


@dataclass(frozen=True, kw_only=True)
class Explained:
    """A statement, the reason of its lines, and the plan that PostgreSQL chose for it."""

    statement: Statement
    notes: tuple[tuple[int, str], ...]
    plan: tuple[str, ...]


async def explain(
    settings: Settings, topic: str = "claim", *, backlog: int = 20_000
) -> list[Explained]:
    """Explain the statements of a topic over `backlog` pending and as many finished runs.

    Raises `BadInput` for an unknown topic, `EngineUnavailable`.
    """
    if topic not in TOPICS:
        raise BadInput(f"nothing to explain about {topic!r}; there is: {', '.join(TOPICS)}")
    async with await open_connection(settings, application="explain") as connection:
        return [await _explain(connection, sql_of(name), backlog) for name in TOPICS[topic]]


async def _explain(connection: Connection, statement: Statement, backlog: int) -> Explained:
    values = SAMPLE | OF_AN_OWNER.get(statement.name, {})
    async with connection.transaction(force_rollback=True):
        for table in COPY_TABLES:
            await connection.execute(table)
        for fill in FILL:
            counted = statement.name == "claim-within-limits"
            await connection.execute(fill, {"backlog": backlog, "counted": counted})
        asked = "EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) " + statement.text
        cursor = await connection.execute(asked, values)
        plan = tuple(str(row["QUERY PLAN"]) for row in await cursor.fetchall())
    return Explained(statement=statement, notes=notes_of(statement), plan=plan)


def notes_of(statement: Statement) -> tuple[tuple[int, str], ...]:
    """(line number from 1, reason), in the order of the lines."""
    notes = []
    for fragment, reason in NOTES[statement.name]:
        if fragment not in statement.text:
            raise LookupError(f"{statement.name} has no line {fragment!r} any more")
        start = statement.text.index(fragment) + len(fragment.rpartition("\n")[0])
        notes.append((statement.text.count("\n", 0, start + 1) + 1, reason))
    return tuple(sorted(notes))


def render(explained: Sequence[Explained]) -> str:
    """Plain text for a terminal: each statement with numbered notes, then its plan."""
    parts = []
    for number, it in enumerate(explained, start=1):
        parts.append(f"{number}. {it.statement.name}   ({it.statement.where})")
        if it.statement.comment:
            parts.append(f"   {it.statement.comment}")
        parts.append("")
        parts += _annotated(it)
        parts += ["", "   The plan that PostgreSQL chose:", ""]
        parts += [f"     {line}" for line in it.plan]
        parts.append("")
    return "\n".join(parts)


def _annotated(it: Explained) -> list[str]:
    lines, reasons = [], dict(it.notes)
    for number, line in enumerate(it.statement.text.splitlines(), start=1):
        lines.append(f"   {number:3} | {line}")
        if number in reasons:
            lines.append(f"       |   ^ {reasons[number]}")
    return lines
