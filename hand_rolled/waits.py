"""The steps that the engine answers itself: sleeping, and waiting for a signal.

Neither needs a worker while it lasts. What is needed is that its end survives takeovers: the time a
sleep ends is fixed when the agent first asks, and a signal is taken and recorded in one statement.
"""

from __future__ import annotations

from datetime import timedelta
from typing import assert_never

from pydantic import JsonValue

from hand_rolled.effects import Effects, Later
from hand_rolled.entries import Place
from hand_rolled.journal import RECORDED, Journal
from two_workers.steps import Sleep, Succeeded, WaitForSignal, fingerprint

# When a sleep ends. Its time is fixed when the agent first asks for it, and survives takeovers.
SLEEP = """
WITH held AS (
    UPDATE runs r SET progress_at = clock_timestamp(), version = r.version + 1
    WHERE r.run_id = %(run_id)s AND r.lease_generation = %(generation)s
      AND r.lease_owner = %(worker)s
    RETURNING r.run_id
)
INSERT INTO open_steps AS o (run_id, batch, position, due_at)
SELECT run_id, %(batch)s, %(position)s, clock_timestamp() + %(wait)s FROM held
ON CONFLICT (run_id, batch, position) DO UPDATE SET due_at = coalesce(o.due_at, excluded.due_at)
RETURNING extract(epoch FROM o.due_at - clock_timestamp())::float8 AS seconds
"""

# The oldest signal of that name which no step has taken, recorded as the step's outcome in the same
# statement: delivered once, in order.
#
# `seen` comes from the signals that this statement could see, not from runs.signals: if the UPDATE
# waits for the delivery of a signal, it finds the new count on the row, but the signal itself came
# too late for the statement's snapshot. Parking on that count would sleep through it.
TAKE_SIGNAL = """
WITH held AS (
    UPDATE runs r SET progress_at = clock_timestamp(), version = r.version + 1
    WHERE r.run_id = %(run_id)s AND r.lease_generation = %(generation)s
      AND r.lease_owner = %(worker)s
    RETURNING r.run_id
), next AS MATERIALIZED (
    SELECT s.run_id, s.signal_id, s.payload
    FROM signals s JOIN held ON held.run_id = s.run_id
    WHERE s.name = %(name)s AND s.taken_by IS NULL
      AND NOT EXISTS (SELECT FROM journal j WHERE j.run_id = s.run_id
                      AND j.batch = %(batch)s AND j.position = %(position)s)
    ORDER BY s.seq LIMIT 1
), taken AS (
    UPDATE signals s SET taken_by = %(batch)s || '.' || %(position)s
    FROM next WHERE s.run_id = next.run_id AND s.signal_id = next.signal_id
    RETURNING s.run_id, next.payload
), recorded AS (
    INSERT INTO journal (run_id, batch, position, kind, fingerprint, outcome, succeeded, attempt,
                         lease_generation, worker)
    SELECT run_id, %(batch)s, %(position)s, %(kind)s, %(fingerprint)s,
           json_build_object('outcome', 'succeeded', 'value', payload), true, 1,
           %(generation)s, %(process)s
    FROM taken
)
SELECT EXISTS (SELECT FROM taken) AS taken, (SELECT payload FROM taken) AS payload,
       coalesce((SELECT max(seq) FROM signals s WHERE s.run_id = held.run_id), 0) AS seen
FROM held
"""


async def answer(effects: Effects, place: Place, step: Sleep | WaitForSignal) -> Succeeded | Later:
    """The outcome of a wait that is over, now recorded; or when to look again."""
    match step:
        case Sleep(seconds=seconds):
            remaining = await sleep(effects.journal, place, seconds)
            return Later(remaining) if remaining > 0 else await effects.slept(place, step)
        case WaitForSignal(name=name):
            taken, payload, seen = await take_signal(
                effects.journal, place, name, fingerprint(step)
            )
            return Succeeded(value=payload) if taken else Later(None, signals_seen=seen)
        case _:
            assert_never(step)


async def sleep(journal: Journal, place: Place, seconds: float) -> float:
    """Begin to sleep, or go on. Returns the seconds that remain. Raises `LeaseLost`."""
    rows = await journal.patiently(SLEEP, **journal.values(place), wait=timedelta(seconds=seconds))
    journal.require(rows, "its sleep was refused")
    remaining: float = rows[0]["seconds"]
    return remaining


async def take_signal(
    journal: Journal, place: Place, name: str, fingerprint: str
) -> tuple[bool, JsonValue, int]:
    """(taken, payload, signals seen): the next signal called `name`, recorded as the outcome.

    Raises `LeaseLost`.
    """
    values = journal.values(place) | {
        "name": name,
        "kind": "wait_for_signal",
        "fingerprint": fingerprint,
        "process": journal.process,
    }
    rows = await journal.patiently(TAKE_SIGNAL, **values)
    journal.require(rows, "its signal was refused")
    if not rows[0]["taken"] and await journal.already_mine(place, fingerprint):
        found = await journal.patiently(RECORDED, **journal.values(place))
        return True, found[0]["outcome"]["value"], rows[0]["seen"]
    return rows[0]["taken"], rows[0]["payload"], rows[0]["seen"]
