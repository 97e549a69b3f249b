"""The world's process: `python -m comparison.world --ledger FILE` prints `world URL` when ready."""

from __future__ import annotations

import argparse
import socket
from pathlib import Path

import uvicorn

from comparison.world.answers import InvestigationAnswers
from comparison.world.app import Latency, build
from comparison.world.book import Book
from investigation.settings import load_settings


def main() -> None:
    """Serve until SIGTERM or SIGINT."""
    options = _options()
    sockets = [tcp_listener()]
    if options.unix is not None:
        sockets.append(_unix(options.unix))
    latency = Latency(seed=options.seed, model=options.model_latency, tool=options.tool_latency)
    app = build(Book(options.ledger), InvestigationAnswers(load_settings()), latency)
    config = uvicorn.Config(
        app,
        log_level="error",
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=1,  # a follower's open question is no reason to stay
        # Longer than any comparison: a connection that is closed as idle while the next call is on
        # its way down it looks to that caller like a failed call.
        timeout_keep_alive=24 * 3600,
    )
    print(f"world http://127.0.0.1:{sockets[0].getsockname()[1]}", flush=True)  # noqa: T201 - the line that the harness waits for
    uvicorn.Server(config).run(sockets=sockets)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m comparison.world")
    parser.add_argument("--ledger", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model-latency", type=_range, default=(0.0, 0.0), metavar="LOW:HIGH")
    parser.add_argument("--tool-latency", type=_range, default=(0.0, 0.0), metavar="LOW:HIGH")
    parser.add_argument("--unix", type=Path, help="also listen on this Unix socket")
    return parser.parse_args()


def _range(text: str) -> tuple[float, float]:
    low, _, high = text.partition(":")
    return float(low), float(high or low)


def tcp_listener() -> socket.socket:
    """A free port on loopback."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", 0))
    listener.listen(1024)
    return listener


def _unix(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen(1024)
    return listener


if __name__ == "__main__":
    main()
