"""One measurement in a process of its own: `python -m benchmarks.measure PEER MEASURE COUNT`.

The server's address comes from `BENCH_ADDRESS`. The last line of the output is the `Timing`, as
JSON. Every contender gets uvloop.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys

import click
import uvloop

from benchmarks.peers import load_peer
from benchmarks.timing import Timing

ADDRESS = "BENCH_ADDRESS"


@click.command()
@click.argument("peer")
@click.argument("measure")
@click.argument("count", type=int)
def main(peer: str, measure: str, count: int) -> None:
    """Measure once and print it."""
    timing = uvloop.run(_measure(peer, measure, count))
    click.echo(json.dumps(dataclasses.asdict(timing)))
    sys.stdout.flush()
    # Some libraries leave threads behind that would keep the process from ending.
    os._exit(0)


async def _measure(peer: str, measure: str, count: int) -> Timing:
    return await load_peer(peer).measures[measure](os.environ[ADDRESS], count)


if __name__ == "__main__":
    main()
