"""How many calls a second the world holds: `python -m comparison.world.bench`.

A comparison makes a few dozen calls a second, so the world must never be what is measured. Here
`CONNECTIONS` clients ask the scripted model as fast as they are answered, for `SECONDS`, over
plain sockets: an HTTP client of the usual kind would itself be the bottleneck.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

from comparison.cluster import Cluster
from comparison.ledger import Ledger
from comparison.world.client import open_world
from investigation.prompts import chat_request
from investigation.steps import AskModel

CONNECTIONS = 32
SECONDS = 5.0


async def measure(seconds: float = SECONDS, connections: int = CONNECTIONS) -> float:
    """Calls a second, each of them recorded at its begin and at its end."""
    with tempfile.TemporaryDirectory() as scratch:
        ledger = Path(scratch) / "ledger.jsonl"
        async with (
            Cluster.open(Path(scratch) / "logs") as cluster,
            open_world(cluster, ledger, seed=1) as world,
        ):
            until = time.monotonic() + seconds
            answered = await asyncio.gather(
                *(_client(world.url, number, until) for number in range(connections))
            )
        recorded = sum(call.delivered for call in Ledger.read(ledger).calls.values())
    if recorded != sum(answered):
        raise RuntimeError(f"{sum(answered)} calls were answered, {recorded} are on record")
    return sum(answered) / seconds


async def _client(url: str, number: int, until: float) -> int:
    """Ask one question after the other; returns how many were answered."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    request, answered = _request(number), 0
    while time.monotonic() < until:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        await reader.readexactly(length)
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(head.decode())
        answered += 1
    writer.close()
    return answered


def _request(number: int) -> bytes:
    step = AskModel(question="why do checkouts fail?", turns=())
    body = json.dumps(chat_request(step, model="scripted", max_output_tokens=4_000)).encode()
    who = {
        "X-Run": f"run-{number}",
        "X-Key": f"run-{number}/0.0",
        "X-Fence": "1",
        "X-Attempt": "1",
        "X-Worker": "bench",
        "X-Engine": "bench",
    }
    lines = ["POST /v1/chat/completions HTTP/1.1", "Host: world", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in who.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


if __name__ == "__main__":
    rate = asyncio.run(measure())
    setting = f"{SECONDS:g} s, {CONNECTIONS} connections, {os.cpu_count()} CPUs"
    print(f"{rate:,.0f} calls/s ({setting})")  # noqa: T201 - a command's output
