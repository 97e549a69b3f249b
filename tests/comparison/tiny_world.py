"""A world whose answers need no app: `python -m tests.comparison.tiny_world FILE`."""

from __future__ import annotations

import sys
from pathlib import Path

import uvicorn

from comparison.world.__main__ import tcp_listener
from comparison.world.app import Answer, Latency, build
from comparison.world.book import Book


class Echo:
    """Answers with what it was asked; every model call costs 10 tokens in and 5 out."""

    def model(self, body: bytes) -> Answer:
        if b"messages" not in body:
            raise ValueError("expected messages")
        return Answer(b'{"echo":%s}' % body, tokens_in=10, tokens_out=5, micro_usd=60)

    def tool(self, name: str, body: bytes) -> Answer:
        if name == "broken":
            raise LookupError("a fault of the world's own")
        return Answer(b'{"echo":%s}' % body)

    def report(self, body: bytes) -> Answer:
        return Answer(b'{"accepted":true}')


def main() -> None:
    listener = tcp_listener()
    app = build(Book(Path(sys.argv[1])), Echo(), Latency(seed=1))
    config = uvicorn.Config(
        app,
        log_level="error",
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=1,  # a follower's open question is no reason to stay
    )
    print(f"world http://127.0.0.1:{listener.getsockname()[1]}", flush=True)  # noqa: T201 - the ready line
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
