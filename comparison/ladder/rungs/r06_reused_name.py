"""Rung 6: a heartbeat keyed by the owner's name, and a name that comes back.

`worker-7` is paused past its lease. Its supervisor starts another `worker-7`, which claims the
run and dies. The first `worker-7` wakes up, and its heartbeat fits: same run, same name. It keeps
alive a run that it does not own and that its owner will never finish.
"""

from __future__ import annotations

from comparison.ladder.checks import ORPHAN
from comparison.ladder.rung import Rung
from comparison.ladder.settings import BOUND
from comparison.ladder.stage import Stage
from comparison.ladder.table import Form

HEARTBEAT = """
UPDATE runs
SET heartbeat_at = now(),
    lease_expires_at = now() + make_interval(secs => %(lease)s)
WHERE run_id = %(run_id)s
  AND lease_owner = %(owner)s
  AND status = 'running'
RETURNING run_id
"""


async def scenario(stage: Stage) -> None:
    """The first worker-7 wakes up when the second has died; worker-8 is idle."""
    first = await stage.worker("worker-7")
    reply_to_first = await stage.hold()
    await stage.start()
    held = await stage.held(reply_to_first)
    second = await stage.worker("worker-7")
    reply_to_second = await stage.hold()
    await stage.strike(first, "pause", held)
    held = await stage.held(reply_to_second)
    await stage.worker("worker-8")
    fault = await stage.strike(second, "kill", held)
    first.resume()
    taken = await stage.until_taken_over(fault)
    await stage.heal_and_converge(within=BOUND if taken else 0)


RUNG = Rung(
    number=6,
    title="heartbeat keyed by a reused name",
    breaks="a zombie keeps its dead successor's run alive, and nobody may take it",
    holds="the heartbeat names the generation: the zombie's renews nothing",
    broken=Form(heartbeat=HEARTBEAT),
    scenario=scenario,
    judge=ORPHAN,
)
