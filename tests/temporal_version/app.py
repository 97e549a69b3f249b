"""The app under test. Its effects write a ledger, which tests read across processes.

`how`: `answer`; `hold` until the file `release` lies beside the ledger, beating a checkpoint;
`silent` the same, without a beat of its own; `thread` the same, blocking a thread; `block:N`
blocks the event loop for N seconds once; `fail:N` fails the first N times; `reply:N` answers with N
characters; `price:N` costs N micro-dollars.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.temporal_version import agents
from tests.temporal_version.steps import Answer, Commit, Work
from two_workers import App, Call, Effect, Retry

QUICK = Retry(max_attempts=3, initial=0.05, backoff=1.0)


def write(ledger: str, event: str, call: Call, **more: Any) -> None:
    """Append one line, in one write: readers in other processes see whole lines."""
    if not ledger:
        return
    entry = {
        "event": event,
        "key": call.key,
        "fence": call.fence,
        "attempt": call.attempt,
        "worker": call.worker,
        "checkpoint": call.checkpoint,
        "pid": os.getpid(),
        "at": time.monotonic(),
        **more,
    }
    fd = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(fd, (json.dumps(entry) + "\n").encode())
    finally:
        os.close(fd)


async def work(step: Work, call: Call) -> Answer:
    write(step.ledger, "begin", call)
    try:
        answer = await _as_told(step, call)
    except asyncio.CancelledError:
        write(step.ledger, "cancelled", call)
        raise
    write(step.ledger, "end", call)
    return answer


async def _as_told(step: Work, call: Call) -> Answer:
    release = Path(step.ledger or "none").with_name("release")
    match step.how.split(":"):
        case ["hold"]:
            page = call.checkpoint if isinstance(call.checkpoint, int) else 0
            while not release.exists():
                page += 1
                call.beat(page)
                await asyncio.sleep(0.02)
        case ["silent"]:
            while not release.exists():
                await asyncio.sleep(0.02)
        case ["thread"]:
            await asyncio.to_thread(_block, release)
        case ["block", seconds] if call.attempt == 1:
            time.sleep(float(seconds))  # noqa: ASYNC251 - the fault under test
        case ["fail", times] if call.attempt <= int(times):
            raise ConnectionError(f"failure {call.attempt}")
        case ["reply", size]:
            return Answer(text=f"{step.text:>{size}}")
        case ["price", price]:
            return Answer(text=step.text, price=int(price))
    return Answer(text=step.text)


def _block(release: Path) -> None:
    while not release.exists():
        time.sleep(0.02)


@asynccontextmanager
async def nothing() -> Any:
    yield None


APP = App(
    kind="work",
    agent=agents.in_sequence,
    effects={
        Work: Effect(work, timeout=60, retry=QUICK, pool="model", cost=lambda answer: answer.price),
        Commit: Effect(work, timeout=60, retry=QUICK, uninterruptible=True),
    },
    resources=nothing,
)
PARALLEL = replace(APP, agent=agents.in_parallel)
COMMITS = replace(APP, agent=agents.commits)
GROWS = replace(APP, agent=agents.grows)
COUNTS = replace(APP, agent=agents.counts_signals)
EVERYTHING = replace(APP, agent=agents.everything)
LARGE = replace(APP, agent=agents.large)
