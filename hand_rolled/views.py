"""What a client reads: one run, its steps, and the answers to the four questions."""

from __future__ import annotations

from typing import LiteralString

from hand_rolled.database import Row
from two_workers.protocol import RunState, RunView, StepRecord

GET_RUN = "SELECT * FROM runs_seen WHERE run_id = %(run_id)s"

LIST_RUNS = """
SELECT * FROM runs_seen
WHERE (%(state)s::text IS NULL OR status = %(state)s)
  AND (%(tenant)s::text IS NULL OR tenant = %(tenant)s)
  AND (%(kind)s::text IS NULL OR kind = %(kind)s)
ORDER BY created_at DESC
LIMIT %(limit)s
"""

LIST_STEPS = """
SELECT batch, position, kind, succeeded, attempt, worker, recorded_at
FROM journal WHERE run_id = %(run_id)s
ORDER BY batch, position
"""

# Answers to `result`: small, because it is asked often.
GET_END = "SELECT status, result, failure FROM runs WHERE run_id = %(run_id)s"

_NATIVE: tuple[LiteralString, ...] = (
    "priority", "lease_generation", "version", "crashes", "solo_crashes", "takeaways", "outages",
    "releases", "suspect", "signals", "reserved", "code_version", "mismatch", "suspend_requested",
    "cancel_reason",
)  # fmt: skip


def run_view(row: Row) -> RunView:
    """A row of `runs` as the seam shows it."""
    owned = row["lease_owner"] is not None
    native = {name: row[name] for name in _NATIVE}
    for name in ("run_after", "heartbeat_at", "progress_at"):
        native[name] = None if row[name] is None else row[name].isoformat()
    return RunView(
        run_id=row["run_id"],
        kind=row["kind"],
        tenant=row["tenant"],
        state=RunState(row["status"]),
        created_at=row["created_at"],
        closed_at=row["closed_at"],
        cancel_requested=row["cancel_requested"],
        failure=row["failure"],
        cost=row["cost"],
        budget=row["budget"],
        owner=row["lease_owner"],
        fence=(row["lease_generation"],) if row["lease_generation"] else None,
        owned_until=row["lease_expires_at"] if owned else None,
        recovery=recovery_of(row),
        native=native,
    )


def recovery_of(row: Row) -> str | None:
    """How the run goes on from here, for a person."""
    match RunState(row["status"]):
        case RunState.PENDING if row["mismatch"] is not None:
            return f"waits for a worker whose code matches: {row['mismatch']}"
        case RunState.PENDING if row["suspect"]:
            return "waits for an idle worker, to run alone: its workers kept dying"
        case RunState.PENDING if not row["served"]:
            return f"no live worker serves kind {row['kind']!r}: it waits for one"
        case RunState.PENDING:
            return f"the next free worker for kind {row['kind']!r} claims it"
        case RunState.SCHEDULED:
            return f"becomes pending at {row['run_after']:%H:%M:%S}"
        case RunState.WAITING:
            return "becomes pending with its next signal"
        case RunState.SUSPENDED:
            return "becomes pending when an operator resumes it"
        case RunState.RUNNING if row["owner_dead_at"] is not None:
            return "its owner is dead: the next worker with room takes it over"
        case RunState.RUNNING if row["lease_expires_at"] <= row["asked_at"]:
            return "its lease has expired: the next worker with room takes it over"
        case RunState.RUNNING:
            return (
                f"unless renewed, anyone may take it over after {row['lease_expires_at']:%H:%M:%S}"
            )
        case _:
            return None


def step_record(run_id: str, row: Row) -> StepRecord:
    """A row of `journal` as the seam shows it."""
    return StepRecord(
        key=f"{run_id}/{row['batch']}.{row['position']}",
        kind=row["kind"],
        outcome="succeeded" if row["succeeded"] else "failed",
        attempt=row["attempt"],
        worker=row["worker"],
        recorded_at=row["recorded_at"],
    )
