"""Start, look, steer and follow runs through the service, on each engine."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.app_bench import Bench
from tests.contract.agents import in_sequence, raises, waits
from tests.contract.probe import Probe, contract_app
from tests.service.client import ACME, GLOBEX, KEYS, read_events, service_client
from two_workers import App, Limits, RunState


@pytest.fixture
def probe() -> Probe:
    return Probe()


def app_of(agent: Any, probe: Probe) -> App:
    return contract_app(f"service-{uuid.uuid4().hex[:8]}", agent, probe)


async def started(client: httpx.AsyncClient, payload: Any, **headers: str) -> str:
    response = await client.post("/api/runs", json={"payload": payload}, headers=headers)
    assert response.status_code == 202, response.text
    return str(response.json()["run_id"])


async def test_a_run_goes_from_its_start_to_its_result(bench: Bench, probe: Probe) -> None:
    app = app_of(in_sequence, probe)
    async with bench.worker(app), service_client(bench.engine, app) as client:
        response = await client.post("/api/runs", json={"payload": {"steps": ["a", "b"]}})
        location = response.headers["location"]

        result = await client.get(f"{location}/result?wait=60")
        view = await client.get(location)
        steps = await client.get(f"{location}/steps")

    assert result.status_code == 200
    assert result.json()["result"] == ["a", "b"]
    assert view.json()["state"] == "succeeded"
    assert [s["key"].rpartition("/")[2] for s in steps.json()["steps"]] == ["0.0", "1.0"]


async def test_a_start_is_repeated_under_its_idempotency_key(bench: Bench, probe: Probe) -> None:
    app, key = app_of(in_sequence, probe), uuid.uuid4().hex
    async with service_client(bench.engine, app) as client:
        first = await started(client, {"steps": ["a"]}, **{"Idempotency-Key": key})
        again = await started(client, {"steps": ["a"]}, **{"Idempotency-Key": key})
        other = await client.post(
            "/api/runs", json={"payload": {"steps": ["b"]}}, headers={"Idempotency-Key": key}
        )

    assert again == first
    assert other.status_code == 409
    assert "exists with other content" in other.json()["detail"]


async def test_what_the_agent_does_not_take_is_not_started(bench: Bench, probe: Probe) -> None:
    app = app_of(in_sequence, probe)
    async with service_client(bench.engine, app) as client:
        refused = await client.post("/api/runs", json={"payload": {"steps": "sk-private-text"}})
        runs = (await client.get("/api/runs")).json()["runs"]

    assert refused.status_code == 422
    assert refused.json()["detail"].startswith("steps: ")
    assert "sk-private-text" not in refused.text
    assert runs == []


async def test_a_failed_run_says_why_in_its_result(bench: Bench, probe: Probe) -> None:
    app = app_of(raises, probe)
    async with bench.worker(app), service_client(bench.engine, app) as client:
        run_id = await started(client, {})
        result = (await client.get(f"/api/runs/{run_id}/result?wait=60")).json()

    assert result["state"] == "failed"
    assert "the agent has a bug" in result["failure"]


async def test_a_failure_that_names_a_secret_is_shown_without_it(
    bench: Bench, probe: Probe
) -> None:
    app = app_of(raises, probe)
    async with (
        bench.worker(app),
        service_client(bench.engine, app, secrets=("agent has a bug",)) as client,
    ):
        run_id = await started(client, {})
        result = await client.get(f"/api/runs/{run_id}/result?wait=60")
        view = await client.get(f"/api/runs/{run_id}")

    assert result.json()["state"] == "failed"
    for text in (result.text, view.text):
        assert "[secret]" in text
        assert "agent has a bug" not in text


async def test_a_run_that_goes_on_has_no_result_yet_and_can_be_cancelled(
    bench: Bench, probe: Probe
) -> None:
    app = app_of(in_sequence, probe)
    async with bench.worker(app), service_client(bench.engine, app) as client:
        run_id = await started(client, {"steps": ["a"], "how": "hold"})
        await probe.until(lambda: len(probe.begun) == 1)

        unfinished = await client.get(f"/api/runs/{run_id}/result")
        asked = await client.post(f"/api/runs/{run_id}/cancel", json={"reason": "not needed"})
        ended = await client.get(f"/api/runs/{run_id}/result?wait=60")

    assert unfinished.status_code == 202
    assert asked.status_code == 202
    assert ended.json()["state"] == "cancelled"


async def test_one_approval_counts_once_however_often_it_arrives(
    bench: Bench, probe: Probe
) -> None:
    app = app_of(waits, probe)
    async with bench.worker(app), service_client(bench.engine, app) as client:
        run_id = await started(client, {"wait_for": ["approve", "approve"]})
        await bench.until_state(run_id, RunState.WAITING)
        for signal_id, by in (("one", "Ada"), ("one", "Ada"), ("two", "Bob")):
            response = await client.post(
                f"/api/runs/{run_id}/approve", json={"by": by, "signal_id": signal_id}
            )
            assert response.status_code == 204, response.text
        result = (await client.get(f"/api/runs/{run_id}/result?wait=60")).json()["result"]
        late = await client.post(
            f"/api/runs/{run_id}/signals/approve", json={"payload": 1, "signal_id": "three"}
        )

    assert [decision["by"] for decision in result] == ["Ada", "Bob"]
    assert late.status_code == 409


async def test_the_list_is_filtered_by_state(bench: Bench, probe: Probe) -> None:
    app = app_of(in_sequence, probe)
    async with service_client(bench.engine, app) as client:
        async with bench.worker(app):
            done = await started(client, {"steps": ["a"]})
            await client.get(f"/api/runs/{done}/result?wait=60")

        async def listed(state: str) -> list[str]:
            found = (await client.get(f"/api/runs?state={state}")).json()["runs"]
            return [run["run_id"] for run in found]

        async with asyncio.timeout(60):
            while await listed("succeeded") != [done]:
                await asyncio.sleep(0.1)  # Temporal lists a little behind
        assert await listed("failed") == []
        assert (await client.get("/api/runs?state=gone")).status_code == 422


async def test_a_tenant_sees_its_own_runs_and_no_other(bench: Bench, probe: Probe) -> None:
    app = app_of(in_sequence, probe)
    async with (
        service_client(bench.engine, app, key=ACME, api_keys=KEYS) as acme,
        service_client(bench.engine, app, key=GLOBEX, api_keys=KEYS) as globex,
        service_client(bench.engine, app, key="a-wrong-key-12345", api_keys=KEYS) as stranger,
    ):
        run_id = await started(acme, {"steps": ["a"]}, **{"Idempotency-Key": "same"})
        other = await started(globex, {"steps": ["a"]}, **{"Idempotency-Key": "same"})

        assert other != run_id
        assert (await acme.get(f"/api/runs/{run_id}")).json()["tenant"] == "acme"
        for path in ("", "/steps", "/result", "/events"):
            assert (await globex.get(f"/api/runs/{run_id}{path}")).status_code == 404
        cancelled = await globex.post(f"/api/runs/{run_id}/cancel", json={})
        assert cancelled.status_code == 404
        async with asyncio.timeout(60):
            while not (await globex.get("/api/runs")).json()["runs"]:
                await asyncio.sleep(0.1)
        listed = (await globex.get("/api/runs?tenant=acme")).json()["runs"]
        assert [run["run_id"] for run in listed] == [other]
        refused = await stranger.get("/api/runs")
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"] == "Bearer"


async def test_progress_is_told_as_events_until_the_end(bench: Bench, probe: Probe) -> None:
    app = app_of(in_sequence, probe)
    async with bench.worker(app), service_client(bench.engine, app, poll_interval=0.1) as client:
        run_id = await started(client, {"steps": ["a", "b", "c"]})
        async with client.stream("GET", f"/api/runs/{run_id}/events") as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            events = [event async for event in read_events(response.aiter_lines())]

    steps = [event for event in events if event.event == "step"]
    assert [event.id for event in steps] == [f"{run_id}/{n}.0" for n in range(3)]
    assert [event.data["kind"] for event in steps] == ["ask"] * 3
    assert [e for e in events if e.event == "run"][-1].data["run"]["state"] == "succeeded"
    assert events[-1].event == "end"


@dataclass
class Tenants:
    """Two tenants that no other test uses; the first may have one active run, the second none."""

    one: str
    none: str

    @property
    def keys(self) -> str:
        return f"{self.one}={ACME},{self.none}={GLOBEX}"


@pytest.fixture
async def tenants(bench: Bench) -> Tenants:
    tenants = Tenants(uuid.uuid4().hex[:12], uuid.uuid4().hex[:12])
    await bench.engine.set_limits(Limits(max_active_per_tenant=1, tenants={tenants.none: 0}))
    return tenants


async def test_above_the_limit_a_start_is_queued(
    bench: Bench, probe: Probe, tenants: Tenants
) -> None:
    app = app_of(in_sequence, probe)
    async with (
        bench.worker(app),
        service_client(bench.engine, app, key=ACME, api_keys=tenants.keys) as client,
    ):
        first = await started(client, {"steps": ["a"], "how": "hold"})
        await probe.until(lambda: len(probe.begun) == 1)
        second = await started(client, {"steps": ["b"]})
        await bench.until_state(second, RunState.PENDING)
        probe.gate.set()
        for run_id in (first, second):
            result = await client.get(f"/api/runs/{run_id}/result?wait=60")
            assert result.json()["state"] == "succeeded"


async def test_above_the_limit_a_start_is_refused_if_so_configured(
    bench: Bench, probe: Probe, tenants: Tenants
) -> None:
    app = app_of(in_sequence, probe)
    options: Any = {"api_keys": tenants.keys, "admission": "reject"}
    async with (
        bench.worker(app),
        service_client(bench.engine, app, key=ACME, **options) as acme,
        service_client(bench.engine, app, key=GLOBEX, **options) as globex,
    ):
        first = await started(acme, {"steps": ["a"], "how": "hold"}, **{"Idempotency-Key": "first"})
        await bench.until_state(first, RunState.RUNNING)
        async with asyncio.timeout(60):
            while first not in (await acme.get("/api/runs?state=running")).text:
                await asyncio.sleep(0.1)

        refused = await acme.post("/api/runs", json={"payload": {"steps": ["b"]}})
        never = await globex.post("/api/runs", json={"payload": {"steps": ["b"]}})
        repeated = await started(
            acme, {"steps": ["a"], "how": "hold"}, **{"Idempotency-Key": "first"}
        )
        probe.gate.set()
        await acme.get(f"/api/runs/{first}/result?wait=60")

    for response in (refused, never):
        assert response.status_code == 429
        assert int(response.headers["retry-after"]) > 0
    assert repeated == first


async def test_a_full_queue_refuses_further_starts(bench: Bench, probe: Probe) -> None:
    app = app_of(in_sequence, probe)  # without a worker, so what is started waits
    keys = f"{uuid.uuid4().hex[:12]}={ACME}"
    async with service_client(bench.engine, app, key=ACME, api_keys=keys, max_queued=1) as client:
        first = await started(client, {"steps": ["a"]})
        async with asyncio.timeout(60):
            while first not in (await client.get("/api/runs?state=pending")).text:
                await asyncio.sleep(0.1)
        refused = await client.post("/api/runs", json={"payload": {"steps": ["b"]}})
        await client.post(f"/api/runs/{first}/cancel", json={})

    assert refused.status_code == 429
    assert "already wait" in refused.json()["detail"]
