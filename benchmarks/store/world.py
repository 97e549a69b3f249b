"""The comparison's world under load: does the ground truth keep up with what it has to record?"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.timing import Timing
from comparison.cluster import Cluster

CONNECTIONS = 16
BODY = json.dumps({"report": "nothing", "run_id": "bench"}).encode()


async def world_calls(directory: Path, count: int) -> Timing:
    """`count` reports over 16 kept-alive connections. Raises `RuntimeError` if one is refused."""
    async with Cluster.open(directory / "world") as cluster:
        command = [sys.executable, "-m", "comparison.world", "--ledger"]
        world = await cluster.start(
            "world", [*command, str(directory / "world.jsonl")], {}, ready=r"^world (\S+)"
        )
        address = urlsplit(world.ready.result())
        assert address.hostname is not None
        assert address.port is not None
        numbers = iter(range(count))
        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(CONNECTIONS):
                group.create_task(_caller(address.hostname, address.port, numbers))
        return Timing(count, time.perf_counter() - began)


async def _caller(host: str, port: int, numbers: Iterator[int]) -> None:
    # Plain sockets: a comfortable client costs more than the world itself and would hide it.
    reader, writer = await asyncio.open_connection(host, port)
    try:
        for number in numbers:
            writer.write(_request(host, number))
            status = await reader.readline()
            headers = await reader.readuntil(b"\r\n\r\n")
            length = int(headers.lower().partition(b"content-length:")[2].split()[0])
            await reader.readexactly(length)
            if b" 200 " not in status:
                raise RuntimeError(f"the world answered {status!r}")
    finally:
        writer.close()


def _request(host: str, number: int) -> bytes:
    head = (
        f"POST /reports HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(BODY)}\r\n"
        f"X-Run: run-{number}\r\nX-Key: run-{number}/0.0\r\nX-Fence: 1\r\nX-Attempt: 1\r\n"
        "X-Worker: bench\r\nX-Engine: bench\r\n\r\n"
    )
    return head.encode() + BODY
