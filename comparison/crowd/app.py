"""The app of the crowd's workers: `two-workers worker --app comparison.crowd.app:APP`.

Its model calls belong to a pool of their own, so a limit on it binds the crowd alone, also on a
server that others use.
"""

from __future__ import annotations

import os
import signal
from dataclasses import replace

from comparison.crowd.agents import run_errand
from comparison.crowd.steps import Die
from investigation.app import APP as INVESTIGATION
from investigation.effects import call_tool
from investigation.steps import AskModel, CallTool
from two_workers import App, Call, Effect

POOL = "crowd"


async def die(step: Die, call: Call) -> None:
    """Leave a line in the ledger, which then knows whom this took along, and die."""
    await call_tool(CallTool(corpus="", tool="last_words", arguments={}), call)
    os.kill(os.getpid(), signal.SIGKILL)


APP = App(
    kind="errand",
    agent=run_errand,
    effects={AskModel: replace(INVESTIGATION.effects[AskModel], pool=POOL), Die: Effect(die)},
    resources=INVESTIGATION.resources,
)
