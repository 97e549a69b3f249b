"""Rung 5: a lease without a fence.

Worker A pauses, its lease ends, worker B claims the run, A wakes up and goes on. The claim has
raised the generation, but no write asks for it: A's write is accepted though B owns the run, and
A goes on to pay for what B pays for too. With the generation in every write, A (18) is refused
once B (19) exists.
"""

from __future__ import annotations

from comparison.ladder.checks import FENCE
from comparison.ladder.rung import Rung
from comparison.ladder.rungs.r03_unowned import RECORD
from comparison.ladder.stage import Stage
from comparison.ladder.table import Form

# The story's heartbeat: nothing says what it means when it finds no row, and nobody looks.
HEARTBEAT = """
WITH renewed AS (
    UPDATE runs
    SET heartbeat_at = now(),
        lease_expires_at = now() + make_interval(secs => %(lease)s)
    WHERE run_id = %(run_id)s
      AND lease_owner = %(owner)s
)
SELECT 'whatever was renewed'
"""

FINISH = """
UPDATE runs
SET status = %(status)s, result = %(result)s, failure = %(failure)s, closed_at = now()
WHERE run_id = %(run_id)s
RETURNING run_id
"""


async def scenario(stage: Stage) -> None:
    """A is paused past its lease, B takes over, and A's reply arrives while B waits for its own."""
    a = await stage.worker("worker-7")
    reply_to_a = await stage.hold()
    await stage.start()
    held = await stage.held(reply_to_a)
    reply_to_b = await stage.hold()
    await stage.worker("worker-8")
    fault = await stage.strike(a, "pause", held)
    await stage.held(reply_to_b)
    a.resume()
    await stage.world.release(reply_to_a)
    await stage.until(lambda: stage.has_written(fault.victim), what="A tried to write")
    await stage.heal_and_converge()


RUNG = Rung(
    number=5,
    title="lease without a fence",
    breaks="a paused worker wakes up and its stale write is accepted",
    holds="generation 18 is refused once 19 exists",
    broken=Form(heartbeat=HEARTBEAT, record=RECORD, finish=FINISH),
    scenario=scenario,
    judge=FENCE,
)
