"""The contenders. Each module has a `Peer` called PEER: its settings, and a coroutine per measure.

Every coroutine gets the address of a fresh database and a count, and returns a `Timing`. Settings
are the best ones that the library's documentation suggests, found in short sweeps where it
suggests none.
"""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import ModuleType

from benchmarks.timing import Timing
from two_workers import BadInput

Measurement = Callable[[str, int], Awaitable[Timing]]
"""(address of a fresh database or of the server, count) → how long it took."""


@dataclass(frozen=True)
class Peer:
    """A contender. `packages` are the distributions whose versions a report must name."""

    name: str
    packages: tuple[str, ...]
    settings: str
    measures: Mapping[str, Measurement]


ABSURD_SQL = "BENCH_ABSURD_SQL"
"""The environment variable that names another schema file of Absurd than its tool's."""

PEERS = {
    "hand_rolled": "benchmarks.peers.hand_rolled_peer",
    "hand_rolled+fast": "benchmarks.peers.hand_rolled_fast_peer",
    "pgqueuer": "benchmarks.peers.pgqueuer_peer",
    "dbos": "benchmarks.peers.dbos_peer",
    "procrastinate": "benchmarks.peers.procrastinate_peer",
    "absurd": "benchmarks.peers.absurd_peer",
    "temporal": "benchmarks.peers.temporal_peer",
    "pgbench": "benchmarks.peers.pgbench_peer",
}


def load_peer(name: str) -> Peer:
    """Import a contender. Raises `BadInput` when its library is not installed."""
    peer: Peer = import_contender(name, PEERS[name]).PEER
    return peer


def import_contender(name: str, module: str) -> ModuleType:
    """The module of a contender. Raises `BadInput` when the library that it needs is missing."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise BadInput(
            f"contender {name!r} needs the package {error.name!r}: run `make bench`, "
            "or pip install 'two-workers[bench]'"
        ) from error
