"""The same requests to the service on an engine, and what a client gets back."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from investigation.app import APP
from tests.app_bench import QUICK, Bench, clean_environment
from tests.service.client import service_client
from two_workers import engine_names, engine_plugin
from two_workers.engines import server_for

TOPICS = (
    "Why do checkouts fail?",
    "Is the database slow?",
    "What changed before the trouble?",
    "Who is affected?",
    "Are payments lost?",
)


@dataclass(frozen=True)
class Asked:
    """One request: what is sent to start a run, and what is done with the run then."""

    start: dict[str, Any]
    key: str
    cancel: bool = False


def requests(count: int) -> list[Asked]:
    """`count` requests of every kind: good ones, too small budgets, invalid and cancelled ones."""
    asked = []
    for number in range(count):
        text = f"{TOPICS[number % len(TOPICS)]} (question {number})"
        payload: dict[str, Any] = {"text": text}
        start: dict[str, Any] = {"payload": payload}
        match number % 10:
            case 1 | 2 | 3:
                payload["max_model_calls"] = 2  # too few: an inconclusive or an early report
            case 5:
                payload["max_model_calls"] = 1
            case 6:
                payload["corpus"] = "/nowhere/at/all"
            case 7:
                start["budget"] = 10
            case 8:
                payload["max_model_calls"] = 0
        # The last of ten repeats the key of the one before, with other content.
        key = f"swap-{number - number % 10 if number % 10 == 9 else number}"
        asked.append(Asked(start=start, key=key, cancel=number % 10 == 4))
    return asked


async def answers(client: httpx.AsyncClient, asked: Sequence[Asked]) -> list[Any]:
    """What a client gets for each request: the status of its start, and how the run ended."""
    gathered: list[Any] = []
    for request in asked:
        started = await client.post(
            "/api/runs", json=request.start, headers={"Idempotency-Key": request.key}
        )
        if started.status_code != 202:
            gathered.append({"status": started.status_code, **started.json()})
            continue
        path = started.headers["location"]
        if request.cancel:
            await client.post(f"{path}/cancel", json={})
        gathered.append(path)
    return [
        answer if isinstance(answer, dict) else await outcome(client, answer, request)
        for answer, request in zip(gathered, asked, strict=True)
    ]


async def outcome(client: httpx.AsyncClient, path: str, request: Asked) -> dict[str, Any]:
    """How a run ended. A cancelled one may have ended at any step, so its steps are left out."""
    async with asyncio.timeout(300):
        while (result := await client.get(f"{path}/result?wait=60")).status_code == 202:
            pass
    view = (await client.get(path)).json()
    steps = (await client.get(f"{path}/steps")).json()["steps"]
    late = await client.post(f"{path}/signals/hello", json={"signal_id": "late", "payload": None})
    told = [(s["key"].rpartition("/")[2], s["kind"], s["outcome"], s["attempt"]) for s in steps]
    return {
        "result": result.json(),
        "state": view["state"],
        "failure": view["failure"],
        "cost": None if request.cancel else view["cost"],
        "steps": None if request.cancel else told,
        "late signal": (late.status_code, late.json()["detail"]),
    }


@asynccontextmanager
async def both_engines(directory: Path) -> AsyncIterator[dict[str, Bench]]:
    """Every engine with a server of its own, at the same time."""
    async with AsyncExitStack() as stack:
        benches = {}
        for name in engine_names():
            plugin, env = engine_plugin(name), {**clean_environment(), **QUICK}
            os.makedirs(directory / name)
            env = await stack.enter_async_context(
                server_for(plugin, env, directory=directory / name)
            )
            engine = await stack.enter_async_context(plugin.connect(plugin.settings(env)))
            benches[name] = Bench(plugin, env, engine)
        yield benches


async def answers_of(bench: Bench, count: int) -> list[Any]:
    """All answers of one engine, with one worker."""
    async with bench.worker(APP), service_client(bench.engine, APP) as client:
        return await answers(client, requests(count))
