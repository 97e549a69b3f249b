"""Rung 7: cancel by killing the process that has the run.

To everybody else a cancelled run then looks like an orphan, and orphans are resumed. A request in
the run's row outlives the process: whoever claims the run next finds it and ends it.
"""

from __future__ import annotations

from comparison.ladder.checks import CANCEL
from comparison.ladder.rung import Rung
from comparison.ladder.stage import Stage
from comparison.ladder.table import Form


async def scenario(stage: Stage) -> None:
    """A run is cancelled while its worker is in a model call; the worker dies in either form."""
    owner = await stage.worker("worker-7")
    hold = await stage.hold()
    [run] = await stage.start()
    held = await stage.held(hold)
    await stage.worker("worker-8")
    await stage.cancel(run, owner)
    if owner.is_running:
        await stage.strike(owner, "kill", held)
    await stage.heal_and_converge()


RUNG = Rung(
    number=7,
    title="cancel by killing the process",
    breaks="another worker resumes the run that was cancelled",
    holds="the request is a row: nobody resumes the run, even if its owner is dead",
    broken=Form(cancel=None),
    scenario=scenario,
    judge=CANCEL,
)
