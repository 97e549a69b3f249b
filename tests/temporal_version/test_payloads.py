"""Payloads: encrypted from end to end, and large ones in a store beside history."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest
from google.protobuf.json_format import MessageToJson

from temporal_version.client import connect_client
from temporal_version.engine import TemporalEngine
from tests.temporal_version.app import GROWS
from tests.temporal_version.conftest import Bench
from two_workers import BadInput, Limits, Run


def key() -> str:
    return base64.b64encode(os.urandom(32)).decode()


async def test_with_a_key_the_server_sees_ciphertext_only(bench: Bench) -> None:
    codec_key = key()
    settings = bench.settings(codec_key=codec_key)
    engine = TemporalEngine(await connect_client(settings), settings)
    await engine.set_limits(Limits(max_active=1))
    run = bench.run("the secret question", how="fail:1")
    await engine.start(run)
    async with bench.worker(codec_key=codec_key):
        assert await engine.result(run.run_id, timeout=60) == ["the secret question"]
    assert (await engine.start(run)).run_id == run.run_id, "the digest is readable to us"
    assert await engine.limits() == Limits(max_active=1)
    handle = bench.engine.client.get_workflow_handle(run.run_id)
    events = [event async for event in handle.fetch_history_events()]
    text = "".join(MessageToJson(event) for event in events)
    assert base64.b64encode(b"secret").decode()[:6] not in text
    for payload in events[0].workflow_execution_started_event_attributes.input.payloads:
        assert payload.metadata["encoding"] == b"binary/encrypted"
        assert b"secret" not in payload.data
    await bench.listed(run.run_id)  # also by a client without the key: the server indexes that much


async def test_with_a_store_large_payloads_lie_beside_history(bench: Bench, tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    settings = bench.settings(payload_store=store)
    engine = TemporalEngine(await connect_client(settings), settings)
    run_id = await bench.start(calls=5, size=900_000)  # the last steps are over 2 MB
    async with bench.worker(GROWS, payload_store=store):
        assert await engine.result(run_id, timeout=100) == 5 * 900_000
    described = await engine.client.get_workflow_handle(run_id).describe()
    assert described.raw_info.history_size_bytes < 200_000
    stored = sum(path.stat().st_size for path in Path(store).rglob("*"))  # noqa: ASYNC240 - a test
    assert stored > 4_500_000


async def test_a_start_over_the_limit_is_refused_in_one_line(bench: Bench) -> None:
    run = Run(run_id="too-large", kind="work", payload={"note": "x" * 2_500_000})
    with pytest.raises(BadInput, match="too-large"):
        await bench.engine.start(run)
