"""A worker process: `python -m benchmarks.ownership.worker HOLDER CONCURRENCY`, until it is killed.

The server's address comes from `BENCH_ADDRESS`, the holder's settings, as JSON, from
`BENCH_SETTINGS`, the diary's path from `BENCH_DIARY`, and the name of this worker among those of
its measurement from `BENCH_WORKER`. Every contender gets uvloop.
"""

from __future__ import annotations

import json
import os

import click
import uvloop

from benchmarks.measure import ADDRESS
from benchmarks.peers.holders import load_holder

SETTINGS = "BENCH_SETTINGS"


@click.command()
@click.argument("holder")
@click.argument("concurrency", type=int)
def main(holder: str, concurrency: int) -> None:
    """Work for so many runs at a time."""
    working = load_holder(holder)
    click.echo(f"worker {os.getpid()} starts")
    settings = json.loads(os.environ[SETTINGS])
    uvloop.run(working.work(os.environ[ADDRESS], settings, concurrency))


if __name__ == "__main__":
    main()
