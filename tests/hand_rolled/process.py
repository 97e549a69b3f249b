"""A worker process for tests that kill, pause and stop real ones: `python -m … process WORKER_ID`.

Its effects write to a ledger, one line per event, before they do anything else; the test reads it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import time
from typing import Any

from pydantic import BaseModel

from hand_rolled.plugin import PLUGIN
from two_workers import App, Call, Effect, Step, do, do_all

LEDGER = "TEST_LEDGER"


class Work(Step[str]):
    """Takes `seconds`, in the way that `how` says: sleep, block, die, or sleep without beating."""

    name: str
    seconds: float = 0.0
    how: str = "sleep"


class Script(BaseModel):
    """What the agent asks for: batches of steps."""

    batches: list[list[Work]]


async def follow(script: Script) -> list[str]:
    answers = []
    for batch in script.batches:
        if len(batch) == 1:
            answers.append(await do(batch[0]))
        else:
            answers += await do_all(batch)
    return answers


def tell(event: str, call: Call) -> None:
    line = {
        "event": event,
        "key": call.key,
        "fence": call.fence[0],
        "worker": call.worker,
        "attempt": call.attempt,
        "at": time.clock_gettime(time.CLOCK_MONOTONIC),
    }
    with open(os.environ[LEDGER], "a") as ledger:
        ledger.write(json.dumps(line) + "\n")


async def work(step: Work, call: Call) -> str:
    tell("begin", call)
    try:
        match step.how:
            case "block":
                time.sleep(step.seconds)  # noqa: ASYNC251 - the event loop stalls: that is the test
            case "die":
                os._exit(1)
            case "silent":
                await asyncio.sleep(step.seconds)
            case _:
                ends = time.monotonic() + step.seconds
                while time.monotonic() < ends:
                    call.beat(None)
                    await asyncio.sleep(min(0.05, step.seconds))
    except asyncio.CancelledError:
        tell("cancelled", call)
        raise
    tell("end", call)
    return step.name


def app(kind: str = "test", **more: Any) -> App:
    return App(kind=kind, agent=follow, effects={Work: Effect(work, timeout=600, **more)})


async def main() -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    # Nobody writes to it: it can be read when whoever started us is gone.
    loop.add_reader(sys.stdin.fileno(), os._exit, 1)
    worker = PLUGIN.worker(PLUGIN.settings(os.environ), [app()], worker_id=sys.argv[1])
    await worker.run(stop)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    asyncio.run(main())
