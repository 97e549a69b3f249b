"""The harness's side of the world: start it, follow its ledger, hold and release calls."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import httpx

from comparison.cluster import Cluster
from comparison.ledger import Begin, Ledger, from_fields
from comparison.world.holds import Rule

T = TypeVar("T")
_POLL = 10.0  # seconds that one request for news may wait in the world


class WorldClient:
    """One world, seen by the harness. `ledger` grows by itself while `following` is entered."""

    def __init__(self, url: str, http: httpx.AsyncClient) -> None:
        self.url = url
        self.ledger = Ledger()
        self._http = http
        self._news = asyncio.Event()

    @classmethod
    @asynccontextmanager
    async def following(cls, url: str) -> AsyncIterator[WorldClient]:
        """A client whose ledger follows the world's until the block is left."""
        async with httpx.AsyncClient(base_url=url, timeout=_POLL + 20) as http:
            client = cls(url, http)
            follower = asyncio.create_task(client._follow())
            try:
                yield client
            finally:
                follower.cancel()
                await asyncio.gather(follower, return_exceptions=True)

    async def until(self, look: Callable[[Ledger], T | None], *, timeout: float) -> T:
        """Wait until `look(ledger)` finds something and return it.

        Raises builtin `TimeoutError` after `timeout` seconds.
        """
        async with asyncio.timeout(timeout):
            while True:
                news = self._news
                found = look(self.ledger)
                if found is not None:
                    return found
                await news.wait()

    async def catch_up(self) -> None:
        """Wait until everything that the world has recorded so far is in `ledger`."""
        while records := await self._records(wait=0.0, after=self.ledger.last_seq):
            newest = records[-1]["seq"]
            await self.until(
                lambda ledger, seq=newest: ledger.last_seq >= seq or None,  # type: ignore[misc] # mypy cannot infer a lambda with a default
                timeout=_POLL,
            )

    async def arm(self, rule: Rule) -> int:
        """Hold the next call that fits `rule`; returns the hold's number."""
        reply = await self._http.post("/control/holds", content=rule.model_dump_json())
        reply.raise_for_status()
        return int(reply.json()["id"])

    async def hit(self, hold: int, *, timeout: float) -> Begin | None:
        """The call that the hold stopped, or None when none came within `timeout` seconds."""
        reply = await self._http.get(
            f"/control/holds/{hold}", params={"wait": timeout}, timeout=timeout + 20
        )
        reply.raise_for_status()
        call = reply.json()["call"]
        if call is None:
            return None
        record = from_fields(call)
        assert isinstance(record, Begin)
        return record

    async def release(self, hold: int) -> None:
        """Let the held call go on, or disarm the hold."""
        (await self._http.post(f"/control/holds/{hold}/release")).raise_for_status()

    async def release_all(self) -> None:
        """Heal: nothing is held any more."""
        (await self._http.post("/control/release")).raise_for_status()

    async def _follow(self) -> None:
        while True:
            for fields in await self._records(wait=_POLL, after=self.ledger.last_seq):
                self.ledger.add(from_fields(fields))
            news, self._news = self._news, asyncio.Event()
            news.set()

    async def _records(self, *, wait: float, after: int) -> list[dict[str, object]]:
        reply = await self._http.get("/control/ledger", params={"after": after, "wait": wait})
        reply.raise_for_status()
        records: list[dict[str, object]] = reply.json()
        return records


@asynccontextmanager
async def open_world(
    cluster: Cluster,
    ledger: Path,
    *,
    seed: int,
    model_latency: tuple[float, float] = (0.0, 0.0),
    tool_latency: tuple[float, float] = (0.0, 0.0),
) -> AsyncIterator[WorldClient]:
    """A world in a process of its own that writes to `ledger`. Latencies: low to high seconds."""
    command = [
        *(sys.executable, "-m", "comparison.world", "--ledger", str(ledger), "--seed", str(seed)),
        *("--model-latency", "{}:{}".format(*model_latency)),
        *("--tool-latency", "{}:{}".format(*tool_latency)),
    ]
    process = await cluster.start("world", command, {}, ready=r"^world (\S+)")
    async with WorldClient.following(process.ready.result()) as client:
        yield client


def app_env(url: str) -> dict[str, str]:
    """The environment in which the app under test meets the world at `url` and nothing else."""
    return {
        "INVESTIGATION_IDENTIFY_CALLS": "true",
        "INVESTIGATION_MODEL_BASE_URL": f"{url}/v1",
        "INVESTIGATION_TOOLS_URL": f"{url}/tools",
        "INVESTIGATION_REPORTS_URL": f"{url}/reports",
    }
