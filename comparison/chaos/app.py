"""An app whose every execution leaves a line outside the engine, and waits for a gate.

`CHAOS_DIR` holds `calls.jsonl`, appended by all workers, and the gates: a step ends once the file
`open-<place>` exists.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

from comparison.chaos.agents import tour
from comparison.chaos.steps import Visit
from two_workers import App, Call, Effect, Retry


def note(call: Call, event: str) -> None:
    line = {
        "event": event,
        "key": call.key.rpartition("/")[2],
        "fence": list(call.fence),
        "pid": os.getpid(),
    }
    path = Path(os.environ["CHAOS_DIR"]) / "calls.jsonl"
    with path.open("a") as file:  # one short write with O_APPEND: lines of workers do not mix
        file.write(json.dumps(line) + "\n")


async def visit(step: Visit, call: Call) -> str:
    note(call, "begin")
    gate = Path(os.environ["CHAOS_DIR"]) / f"open-{step.place}"
    try:
        while not gate.exists():
            call.beat(None)
            await asyncio.sleep(0.02)
    except asyncio.CancelledError:
        note(call, "told to stop")
        raise
    note(call, "end")
    return step.place


APP = App(
    kind="tour",
    agent=tour,
    effects={Visit: Effect(visit, timeout=120, retry=Retry(max_attempts=100, initial=0.1))},
)
