"""One measurement in a process of its own: `python -m benchmarks.measure PEER MEASURE COUNT`.

The server's address comes from `BENCH_ADDRESS`. The last line of the output is the `Timing`, as
JSON. Every contender gets uvloop. One that does not end in time shows where it hangs, and ends.
"""

from __future__ import annotations

import asyncio
import dataclasses
import faulthandler
import json
import os
import sys

import click
import uvloop

from benchmarks.peers import load_peer
from benchmarks.timing import Timing
from two_workers import BadInput

ADDRESS = "BENCH_ADDRESS"
PATIENCE = "BENCH_PATIENCE"
"""Seconds for one measurement with its preparation."""


@click.command()
@click.argument("peer")
@click.argument("measure")
@click.argument("count", type=int)
def main(peer: str, measure: str, count: int) -> None:
    """Measure once and print it."""
    try:
        timing = uvloop.run(_measure(peer, measure, count))
    except BadInput as error:
        click.echo(str(error))
        sys.exit(2)
    click.echo(json.dumps(dataclasses.asdict(timing)))
    sys.stdout.flush()
    # Some libraries leave threads behind that would keep the process from ending.
    os._exit(0)


async def _measure(peer: str, measure: str, count: int) -> Timing:
    patience = float(os.environ[PATIENCE])
    asyncio.get_running_loop().call_later(patience, _give_up)
    faulthandler.dump_traceback_later(patience + 2, exit=True)  # the loop itself is blocked
    return await load_peer(peer).measures[measure](os.environ[ADDRESS], count)


def _give_up() -> None:
    for task in asyncio.all_tasks():
        task.print_stack()
    os._exit(1)


if __name__ == "__main__":
    main()
