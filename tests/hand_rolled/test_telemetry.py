"""Figures and spans, as whoever operates the engine sees them."""

from __future__ import annotations

import asyncio
import re
import urllib.request

import pytest

from hand_rolled.server import _free_port
from hand_rolled.settings import read_settings
from tests.hand_rolled.bench import Store
from tests.hand_rolled.driving import Ask, answer, app, ask_twice, working
from tests.tracing import spans_from_now
from two_workers import BadInput, Call, Limits


def scrape(address: str) -> tuple[str, str]:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=30) as response:
        return response.headers["Content-Type"], response.read().decode()


async def test_a_worker_serves_openmetrics(store: Store) -> None:
    await store.engine.set_limits(Limits(pools={"model": 4}))
    for _ in range(3):
        await store.enqueue(kind='odd "kind"')
    address = f"127.0.0.1:{_free_port()}"
    run_id = await store.enqueue()
    async with working(store, app(ask_twice, answer), prometheus=address):
        await store.engine.result(run_id, timeout=60)
        content_type, text = await asyncio.to_thread(scrape, address)
    assert content_type.startswith("application/openmetrics-text; version=1.0.0")
    assert text.endswith("# EOF\n")
    assert r'two_workers_open_runs{state="pending",kind="odd \"kind\""} 3' in text
    assert 'two_workers_pool_limit{pool="model"} 4' in text
    assert 'two_workers_worker_events_total{event="claimed"} 1' in text
    assert "two_workers_workers{} 1" in text
    for line in text.splitlines():
        assert re.fullmatch(r"# .+|[a-z_]+\{.*\} -?[0-9.e+]+", line), line


async def test_an_address_that_is_taken_is_one_clear_line(store: Store) -> None:
    taken = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    async with taken:
        address = f"127.0.0.1:{taken.sockets[0].getsockname()[1]}"
        with pytest.raises(BadInput, match="cannot listen there"):
            async with working(store, app(ask_twice, answer), prometheus=address):
                pass
    with pytest.raises(BadInput, match="HAND_ROLLED_PROMETHEUS"):
        read_settings({"DATABASE_URL": "postgresql://h/d", "HAND_ROLLED_PROMETHEUS": "nowhere"})


async def test_each_attempt_of_a_step_is_a_span(store: Store) -> None:
    exporter = spans_from_now()

    async def fails_once(step: Ask, call: Call) -> str:
        if call.attempt == 1 and step.text == "one":
            raise ConnectionError("once")
        return step.text

    run_id = await store.enqueue()
    async with working(store, app(ask_twice, fails_once), otel=True):
        await store.engine.result(run_id, timeout=60)
    spans = exporter.get_finished_spans()
    assert [(s.attributes["two_workers.key"], s.status.is_ok) for s in spans] == [
        (f"{run_id}/0.0", False), (f"{run_id}/0.0", True), (f"{run_id}/1.0", True),
    ]  # fmt: skip
    assert {s.name for s in spans} == {"step ask"}
