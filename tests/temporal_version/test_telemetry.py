"""Metrics and traces, each by one setting."""

from __future__ import annotations

import asyncio
import urllib.request

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from temporal_version.client import connect_client
from temporal_version.engine import TemporalEngine
from temporal_version.server import _free_port
from tests.temporal_version.conftest import Bench
from tests.tracing import spans_from_now


def scrape(address: str) -> str:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=5) as reply:
        text: str = reply.read().decode()
    return text


async def test_a_worker_serves_its_metrics(bench: Bench) -> None:
    address = f"127.0.0.1:{_free_port()}"
    run_id = await bench.start("a")
    async with bench.worker(prometheus=address):
        await bench.engine.result(run_id, timeout=60)
        metrics = await asyncio.to_thread(scrape, address)
    assert "temporal_activity_execution_latency" in metrics
    assert f'task_queue="{bench.settings().queue("work")}"' in metrics


@pytest.fixture
def spans() -> InMemorySpanExporter:
    return spans_from_now()


async def test_a_run_is_one_trace(bench: Bench, spans: InMemorySpanExporter) -> None:
    settings = bench.settings(otel="true")
    engine = TemporalEngine(await connect_client(settings), settings)
    run = bench.run("a", "b")
    async with bench.worker(otel="true"):
        await engine.start(run)
        await engine.result(run.run_id, timeout=60)
    found = spans.get_finished_spans()
    names = [span.name for span in found]
    assert names.count("RunActivity:work") == 2
    assert {"StartWorkflow:AgentRun", "RunWorkflow:AgentRun"} <= set(names)
    assert len({span.context.trace_id for span in found if "Workflow" in span.name}) == 1
