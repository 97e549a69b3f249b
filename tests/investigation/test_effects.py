"""Reports, tools and identity at the outside, over real HTTP and real files."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from investigation.app import APP
from investigation.effects import (
    ServiceUnavailable,
    call_tool,
    open_resources,
    publish_report,
    write_report,
)
from investigation.identity import StaleFence
from investigation.model_server import _Server
from investigation.settings import Settings, load_settings
from investigation.steps import CallTool, PublishReport, Report
from investigation.tools import run_tool
from tests.investigation.conftest import driver
from tests.investigation.memory_engine import make_call
from two_workers import BadInput, PermanentFailure, load_app

REPORT = Report(question="q", answer="a", confidence="low")


class Outside:
    """Serves tools and takes reports; `reply`, when set, is given to every call instead."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.reports: list[Any] = []
        self.headers: list[dict[str, str]] = []
        self.reply: Response | None = None

    async def tool(self, request: Request) -> Response:
        self.headers.append(dict(request.headers))
        body = await request.json()
        result = run_tool(body["corpus"], request.path_params["tool"], body["arguments"])
        return self.reply or JSONResponse(result.model_dump())

    async def report(self, request: Request) -> Response:
        self.headers.append(dict(request.headers))
        self.reports.append(await request.json())
        return self.reply or Response(status_code=204)


@asynccontextmanager
async def serve() -> AsyncIterator[Outside]:
    listener = socket.create_server(("127.0.0.1", 0))
    outside = Outside(f"http://127.0.0.1:{listener.getsockname()[1]}")
    routes = [
        Route("/tools/{tool}", outside.tool, methods=["POST"]),
        Route("/reports", outside.report, methods=["POST"]),
    ]
    server = _Server(uvicorn.Config(Starlette(routes=routes), log_level="error", lifespan="off"))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield outside
    finally:
        server.should_exit = True
        await serving


@pytest.fixture
async def outside() -> AsyncIterator[Outside]:
    async with serve() as it:
        yield it


async def test_tools_and_reports_outside_give_the_same_report(
    outside: Outside, corpus: Path
) -> None:
    question = {"text": "why are requests failing?", "corpus": str(corpus)}
    inside = await driver().run(question)
    it = driver(
        tools_url=f"{outside.url}/tools", reports_url=f"{outside.url}/reports", identify_calls=True
    )
    assert await it.run(question) == inside
    assert outside.reports == [inside.model_dump(mode="json")]
    keys = [headers["x-key"] for headers in outside.headers]
    assert len(keys) == len(set(keys)) == inside.tool_calls + 1
    assert all(headers["x-fence"] == "18" for headers in outside.headers)


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (JSONResponse({"error": {"type": "stale_fence"}}, 409), StaleFence),
        (JSONResponse({"error": "no"}, 403), PermanentFailure),
        (JSONResponse({"error": "no"}, 500), ServiceUnavailable),
        (Response("<html>", 502), ServiceUnavailable),
    ],
)
async def test_errors_of_the_outside(
    outside: Outside, reply: Response, error: type[Exception]
) -> None:
    outside.reply = reply
    settings = Settings(tools_url=f"{outside.url}/tools", reports_url=f"{outside.url}/reports")
    async with open_resources(settings) as resources:
        for attempt in (
            call_tool(CallTool(corpus="", tool="list_files", arguments={}), make_call(resources)),
            publish_report(PublishReport(report=REPORT), make_call(resources)),
        ):
            with pytest.raises(error):
                await attempt


async def test_a_tool_service_that_answers_nonsense_is_tried_again(outside: Outside) -> None:
    outside.reply = JSONResponse({"fine": True})
    async with open_resources(Settings(tools_url=f"{outside.url}/tools")) as resources:
        step = CallTool(corpus="", tool="list_files", arguments={})
        with pytest.raises(ServiceUnavailable, match="not a tool result"):
            await call_tool(step, make_call(resources))


async def test_an_invented_tool_name_reaches_no_other_path(outside: Outside) -> None:
    async with open_resources(Settings(tools_url=f"{outside.url}/tools")) as resources:
        step = CallTool(corpus="", tool="../reports", arguments={})
        result = await call_tool(step, make_call(resources))
    assert not result.ok
    assert outside.headers == []


async def test_a_report_is_written_once_per_run(tmp_path: Path) -> None:
    folder = tmp_path / "reports"
    async with open_resources(Settings(reports_dir=folder)) as resources:
        for attempt in (1, 2):
            call = make_call(resources, key="shop:run.1/9.0", attempt=attempt)
            published = await publish_report(PublishReport(report=REPORT), call)
    (written,) = folder.iterdir()
    assert published.where == str(written)
    assert Report.model_validate_json(written.read_text()) == REPORT


def test_a_report_that_cannot_be_written_leaves_no_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_report(tmp_path, "run-1", REPORT)
    before = path.read_text()

    def disk_is_full(_: int) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "fsync", disk_is_full)
    with pytest.raises(OSError, match="No space left"):
        write_report(tmp_path, "run-1", REPORT.model_copy(update={"answer": "another"}))
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    assert path.read_text() == before


async def test_without_a_place_a_report_stays_with_the_run() -> None:
    async with open_resources(Settings()) as resources:
        published = await publish_report(PublishReport(report=REPORT), make_call(resources))
    assert published.where == ""


async def test_a_worker_may_not_read_outside_its_folder(corpus: Path, tmp_path: Path) -> None:
    async with open_resources(Settings(corpus_root=tmp_path / "elsewhere")) as resources:
        step = CallTool(corpus=str(corpus), tool="list_files", arguments={})
        result = await call_tool(step, make_call(resources))
    assert "outside" in result.text


# Settings.


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INVESTIGATION_MODEL_API_KEY", "sk-secret")
    monkeypatch.setenv("INVESTIGATION_PRICE_IN", "0.5")
    settings = load_settings()
    assert settings.price_in == 0.5
    assert settings.model_api_key.get_secret_value() == "sk-secret"
    assert "sk-secret" not in repr(settings)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MODEL_BASE_URL", "localhost:8000"),
        ("MODEL_TIMEOUT", "0"),
        ("PRICE_OUT", "-1"),
        ("IDENTIFY_CALLS", "perhaps"),
        ("MODEL_NAME", ""),
    ],
)
def test_impossible_settings_are_named_in_one_line(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"INVESTIGATION_{name}", value)
    with pytest.raises(BadInput, match=f"INVESTIGATION_{name}: ") as caught:
        load_settings()
    assert "\n" not in str(caught.value)


def test_a_worker_finds_the_app_by_its_name() -> None:
    app = load_app("investigation.app:APP")
    assert app is APP
    assert app.kind == "investigation"
    json.dumps(app.dump_result(REPORT))
