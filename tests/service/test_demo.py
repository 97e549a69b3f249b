"""`two-workers serve --demo` as a process: real workers, broken over HTTP, none left behind."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.service.browser import served

pytestmark = pytest.mark.timeout(240)


async def until(client: httpx.AsyncClient, path: str, true: Callable[[Any], Any]) -> Any:
    async with asyncio.timeout(90):
        while not true(seen := (await client.get(path)).json()):
            await asyncio.sleep(0.1)
    return seen


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("engine", ["hand_rolled", "temporal"])
async def test_killed_and_paused_owners_are_succeeded_by_others(engine: str) -> None:
    arguments = ("--demo", "--engine", engine, "--pace", "1")
    async with (
        served(*arguments) as address,
        httpx.AsyncClient(base_url=address, timeout=60) as client,
    ):
        workers = (await client.get("/api/demo/workers")).json()
        question = {"payload": {"text": "Why do checkouts fail?"}}
        run = f"/api/runs/{(await client.post('/api/runs', json=question)).json()['run_id']}"

        await until(client, f"{run}/steps", lambda seen: seen["steps"])
        killed = (await until(client, run, lambda view: view["owner"]))["owner"]
        ended = (await client.post(f"/api/demo/workers/{killed}/kill")).json()
        others = {worker["worker_id"] for worker in workers} - {killed}
        paused = (await until(client, run, lambda view: view["owner"] in others))["owner"]
        await client.post(f"/api/demo/workers/{paused}/pause")
        (last,) = others - {paused}
        await until(client, run, lambda view: view["owner"] == last)
        await client.post(f"/api/demo/workers/{paused}/resume")

        result = (await client.get(f"{run}/result?wait=60")).json()
        steps = (await client.get(f"{run}/steps")).json()["steps"]

        assert ended["status"] == "ended"
        assert not is_alive(ended["pid"])
        assert result["state"] == "succeeded", result
        assert len({step["key"] for step in steps}) == len(steps) > 5
        # On Temporal each step has an owner of its own: the killed one may have recorded none.
        recorders = {last} if engine == "temporal" else {killed, last}
        assert recorders <= {step["worker"] for step in steps}
        again = await client.post(f"/api/demo/workers/{killed}/kill")
        assert again.status_code == 409
        stranger = await client.post(f"/api/demo/workers/{os.getpid()}/kill")
        assert stranger.status_code == 404
    assert not any(is_alive(worker["pid"]) for worker in workers)


async def test_only_a_local_name_is_served_and_the_page_trusts_only_itself() -> None:
    arguments = ("--demo", "--engine", "hand_rolled", "--workers", "1")
    async with (
        served(*arguments) as address,
        httpx.AsyncClient(base_url=address, timeout=60) as client,
    ):
        page = await client.get("/")
        rebound = await client.get("/api/runs", headers={"Host": "evil.example"})

    assert page.status_code == 200
    assert "default-src 'self'" in page.headers["content-security-policy"]
    assert rebound.status_code == 400
