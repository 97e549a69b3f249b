"""The ground truth: recorded, refused, held and released, over HTTP against a real process."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from comparison.ledger import Begin, End, Ledger
from comparison.world.bench import measure
from comparison.world.client import WorldClient
from comparison.world.holds import Rule

from .conftest import Cluster, start_caller


def headers(key: str, fence: str, worker: str = "w1") -> dict[str, str]:
    run = key.rpartition("/")[0]
    who = {"X-Run": run, "X-Key": key, "X-Fence": fence}
    return {**who, "X-Attempt": "1", "X-Worker": worker, "X-Engine": "test"}


async def ask(world: WorldClient, key: str, fence: str, **who: str) -> httpx.Response:
    async with httpx.AsyncClient(base_url=world.url) as http:
        return await http.post(
            "/v1/chat/completions", json={"messages": []}, headers=headers(key, fence, **who)
        )


async def test_a_call_is_recorded_with_its_identity_its_tokens_and_its_price(
    world: WorldClient, tmp_path: Path
) -> None:
    reply = await ask(world, "run-1/0.0", "18.2", worker="w7")
    assert reply.json() == {"echo": {"messages": []}}
    await world.catch_up()
    begin, end = world.ledger.records
    assert isinstance(begin, Begin)
    assert isinstance(end, End)
    assert (begin.identity.run, begin.identity.key) == ("run-1", "run-1/0.0")
    assert (begin.identity.fence, begin.identity.worker) == ((18, 2), "w7")
    assert (end.outcome, end.delivered, end.tokens_in, end.tokens_out) == ("answered", True, 10, 5)
    assert begin.t_ns < end.t_ns
    assert Ledger.read(tmp_path / "ledger.jsonl").records == world.ledger.records


async def test_a_fence_older_than_one_seen_for_the_key_is_refused_and_on_record(
    world: WorldClient,
) -> None:
    assert (await ask(world, "run-1/0.0", "19")).status_code == 200
    refused = await ask(world, "run-1/0.0", "18", worker="zombie")
    assert refused.status_code == 409
    assert refused.json()["error"]["type"] == "stale_fence"
    assert (await ask(world, "run-1/1.0", "18")).status_code == 200, "another key"
    assert (await ask(world, "run-1/0.0", "19")).status_code == 200, "the same owner again"
    await world.catch_up()
    outcomes = [call.end.outcome for call in world.ledger.calls.values() if call.end]
    assert outcomes == ["answered", "refused", "answered", "answered"]


async def test_a_call_without_identity_is_rejected_and_not_on_record(world: WorldClient) -> None:
    async with httpx.AsyncClient(base_url=world.url) as http:
        assert (await http.post("/reports", json={})).status_code == 400
    await world.catch_up()
    assert world.ledger.records == []


async def test_input_that_no_vendor_would_accept_is_an_error_on_record(world: WorldClient) -> None:
    async with httpx.AsyncClient(base_url=world.url) as http:
        who = headers("run-1/0.0", "1")
        reply = await http.post("/v1/chat/completions", json={}, headers=who)
    assert reply.status_code == 400
    await world.catch_up()
    assert world.ledger.calls[1].end is not None
    assert world.ledger.calls[1].end.outcome == "failed"


async def test_a_fault_of_the_worlds_own_is_an_error_on_record_too(world: WorldClient) -> None:
    async with httpx.AsyncClient(base_url=world.url) as http:
        reply = await http.post("/tools/broken", json={}, headers=headers("run-1/0.0", "1"))
    assert (reply.status_code, reply.json()["error"]["code"]) == (500, "server_error")
    await world.catch_up()
    assert [call.end and call.end.outcome for call in world.ledger.calls.values()] == ["failed"]


@pytest.mark.parametrize("point", ["begin", "during", "reply"])
async def test_the_chosen_occurrence_is_held_until_it_is_released(
    cluster: Cluster, world: WorldClient, point: str
) -> None:
    hold = await world.arm(Rule(at=point, kind="model", run="run-2", occurrence=2))
    assert (await ask(world, "run-2/0.0", "1")).status_code == 200, "the first is not held"
    assert (await ask(world, "run-1/0.0", "1")).status_code == 200, "another run is not held"
    caller = await start_caller(cluster, world, "run-2/1.0", "1")
    held = await world.hit(hold, timeout=20)
    assert held is not None
    assert held.identity.key == "run-2/1.0"
    assert caller.is_running
    assert world.ledger.calls[held.call].end is None
    await world.release(hold)
    assert await caller.child.wait() == 0
    await world.until(lambda ledger: ledger.calls[held.call].delivered or None, timeout=20)


async def test_every_call_of_a_worker_is_held_until_all_are_released(
    cluster: Cluster, world: WorldClient
) -> None:
    first = await start_caller(cluster, world, "run-1/0.0", "1")
    assert await first.child.wait() == 0
    own = await world.arm(Rule(at="begin", key="run-2/0.0"))
    rest = await world.arm(Rule(at="begin", every=True))
    callers = [await start_caller(cluster, world, f"run-{n}/0.0", "1") for n in (2, 3, 4)]
    await world.until(lambda ledger: len(ledger.calls) == 4 or None, timeout=20)
    await world.release(own)
    assert await callers[0].child.wait() == 0, "it was held by a rule of its own"
    assert callers[1].is_running
    assert callers[2].is_running
    await world.release(rest)
    assert [await caller.child.wait() for caller in callers] == [0, 0, 0]


async def test_a_hold_that_nothing_hits_says_so(world: WorldClient) -> None:
    hold = await world.arm(Rule(at="begin", run="nobody"))
    assert await world.hit(hold, timeout=0.05) is None
    await world.release_all()


async def test_the_reply_to_a_caller_that_was_killed_counts_as_not_delivered(
    cluster: Cluster, world: WorldClient
) -> None:
    hold = await world.arm(Rule(at="reply"))
    caller = await start_caller(cluster, world, "run-1/0.0", "1")
    held = await world.hit(hold, timeout=20)
    assert held is not None
    await caller.killed()
    await world.release(hold)
    end = await world.until(lambda ledger: ledger.calls[held.call].end, timeout=20)
    assert (end.outcome, end.delivered) == ("answered", False)
    assert end.tokens_in == 10, "the work was done and paid, whoever was left to hear of it"


async def test_under_pressure_every_answered_call_is_on_record() -> None:
    assert await measure(seconds=0.5, connections=8) > 0, "it raises if one is missing"
