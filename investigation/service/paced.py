"""The served app in slow motion: every step first waits, so that a person can follow and interfere.

The demo's workers load this module instead of the app that `DEMO_APP` names; kind, agent, steps
and effects are the app's own. What a worker does is also printed, for the page to show: a
zombie's last words are the best part of the demo.
"""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import replace
from functools import wraps
from typing import Any

from two_workers import App, Call, Effect, Step, load_app

logger = logging.getLogger(__name__)
for chatty in ("httpx", "httpx2"):
    logging.getLogger(chatty).setLevel(logging.WARNING)


def paced(app: App, seconds: float) -> App:
    """The same app, each of whose steps takes `seconds` longer."""
    effects = {step_type: _slow(effect, seconds) for step_type, effect in app.effects.items()}
    return replace(app, effects=effects)


def _slow(effect: Effect, seconds: float) -> Effect:
    @wraps(effect.run)
    async def run(step: Step[Any], call: Call) -> Any:
        name = f"{step.kind} {call.key.rpartition('/')[2]}, attempt {call.attempt}"
        logger.info("begins %s", name)
        call.beat("slow motion")
        try:
            await asyncio.sleep(seconds)
            result = await effect.run(step, call)
        except asyncio.CancelledError:
            logger.warning("is stopped in %s: it may not go on", name)
            raise
        logger.info("ends %s", name)
        return result

    return replace(effect, run=run, timeout=effect.timeout + seconds)


def __getattr__(name: str) -> App:
    """`APP`, made when a worker asks for it: importing this module needs no environment."""
    if name != "APP":
        raise AttributeError(name)
    return paced(load_app(os.environ["DEMO_APP"]), float(os.environ["DEMO_PACE"]))
