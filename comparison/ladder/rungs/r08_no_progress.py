"""Rung 8: a heartbeat mistaken for progress.

The worker appears alive, and it is: it beats every half second, while its call hangs. The lease
never ends, so nobody ever takes the run away. Progress is another column, stamped by recorded
steps only, and judged by the others.
"""

from __future__ import annotations

from comparison.ladder.checks import ORPHAN
from comparison.ladder.rung import Rung
from comparison.ladder.settings import BOUND, PATIENCE
from comparison.ladder.stage import Stage
from comparison.ladder.table import SOUND, Form


async def scenario(stage: Stage) -> None:
    """The model never answers the first worker; another one is idle."""
    stuck = await stage.worker("worker-7")
    hold = await stage.hold()
    await stage.start()
    held = await stage.held(hold)
    await stage.worker("worker-8")
    fault = await stage.strike(stuck, "hang", held)
    taken = await stage.until_taken_over(fault)
    await stage.heal_and_converge(within=BOUND if taken else 0, release=taken)


RUNG = Rung(
    number=8,
    title="heartbeat mistaken for progress",
    breaks="a worker that is stuck beats on, and its run is stuck for good",
    holds="without a recorded step the run is taken away",
    broken=SOUND,  # everything that the rungs below have taught
    fixed=Form(patience=PATIENCE),
    scenario=scenario,
    judge=ORPHAN,
)
