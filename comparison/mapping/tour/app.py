"""The app of the scenarios: each execution of a step leaves a note outside of any engine.

`STUDY_DIR` holds `calls.jsonl`, appended by all workers, and the gates: a step that holds ends
once the file `open-<place>`, or `open-<place>-<pid>` for one worker, exists.

`how` says what a Visit does:

    answer       answer at once
    hold         wait for the gate, and say all the time that it goes on
    brief        take a moment, so that calls overlap
    hang         wait for the gate without a word: alive, but stuck
    fail:N       fail the first N attempts, then answer
    die          kill the worker's process, as a bug in C code would
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

from comparison.mapping.tour import agents
from comparison.mapping.tour.steps import Pay, Stay, Visit
from two_workers import App, Call, Effect, Retry, Step


def note(call: Call, event: str, **more: str) -> None:
    """Append one line to the record; a short write with O_APPEND does not mix with others."""
    line = {
        "t": time.time(),
        "event": event,
        "run": call.run_id,
        "key": call.key.rpartition("/")[2],
        "fence": list(call.fence),
        "attempt": call.attempt,
        "worker": call.worker,
        "pid": os.getpid(),
        **more,
    }
    with (Path(os.environ["STUDY_DIR"]) / "calls.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


async def visit(step: Visit, call: Call) -> Stay:
    """Carry out a Visit and note its begin and how it ended."""
    note(call, "begin", **_token(call))
    try:
        await _as_told(step, call)
    except asyncio.CancelledError:
        note(call, "told to stop")
        raise
    note(call, "end")
    return Stay(place=step.place, price=step.price)


async def pay(step: Pay, call: Call) -> Stay:
    """Carry out a Pay: wait for the gate, whatever happens."""
    return await visit(Visit(place=step.place, how="hold"), call)


async def _as_told(step: Visit, call: Call) -> None:
    match step.how.split(":"):
        case ["hold"]:
            while not _is_open(step.place):
                call.beat(None)
                await asyncio.sleep(0.02)
        case ["brief"]:
            await asyncio.sleep(0.15)
        case ["hang"]:
            while not _is_open(step.place):
                await asyncio.sleep(0.02)
        case ["fail", times] if _begun(call) <= int(times):
            note(call, "failed")
            raise ConnectionError(f"attempt {_begun(call)} of {step.place} failed")
        case ["die"]:
            os.kill(os.getpid(), signal.SIGKILL)
        case _:
            call.beat(None)


def _is_open(place: str) -> bool:
    directory = Path(os.environ["STUDY_DIR"])
    return any((directory / f"open-{name}").exists() for name in (place, f"{place}-{os.getpid()}"))


def _begun(call: Call) -> int:
    """How often this step has begun, over all workers."""
    record = (Path(os.environ["STUDY_DIR"]) / "calls.jsonl").read_text()
    place = (call.run_id, call.key.rpartition("/")[2])
    lines = [json.loads(line) for line in record.splitlines()]
    return sum((c["run"], c["key"]) == place and c["event"] == "begin" for c in lines)


def _token(call: Call) -> dict[str, str]:
    """Temporal's token of this attempt, so that a scenario can complete it again, too late."""
    if call.engine != "temporal":
        return {}
    from temporalio import activity

    return {"token": base64.b64encode(activity.info().task_token).decode()}


_EFFECTS: dict[type[Step[Any]], Effect] = {
    Visit: Effect(
        visit,
        timeout=120,
        retry=Retry(max_attempts=5, initial=0.2, backoff=2.0),
        pool="model",
        worst_case=lambda step: step.price,
        cost=lambda stay: stay.price,
    ),
    Pay: Effect(pay, timeout=120, uninterruptible=True),
}

TOUR = App(kind="tour", agent=agents.tour, effects=_EFFECTS)
FAN_OUT = App(kind="fan-out", agent=agents.fan_out, effects=_EFFECTS)
PAYMENT = App(kind="payment", agent=agents.payment, effects=_EFFECTS)
APPROVAL = App(kind="approval", agent=agents.approval, effects=_EFFECTS)
APPROVAL_CHANGED = App(kind="approval", agent=agents.approval_changed, effects=_EFFECTS)
