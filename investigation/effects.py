"""How the agent's steps are carried out: one function for each.

A tool or a report may go to a place outside (`tools_url`, `reports_url`) or stay in this worker.
Either way an effect may run twice, since a worker can die after the work and before the record:
reading logs is harmless to repeat, and a report is written once per run.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from pydantic import JsonValue, ValidationError

from investigation.identity import identity_headers, refuse_if_stale
from investigation.logs import OUTPUT, QUOTES
from investigation.model import ModelClient
from investigation.model_server import serve_scripted_model
from investigation.settings import Settings
from investigation.steps import (
    AskModel,
    CallTool,
    ModelReply,
    Published,
    PublishReport,
    Report,
    ToolResult,
)
from investigation.tools import run_tool_apart
from two_workers import Call, PermanentFailure


class ServiceUnavailable(Exception):
    """The tool service or the place for reports did not answer usefully. Worth another try."""


@dataclass(frozen=True)
class Resources:
    """What a worker opens once for all its runs."""

    settings: Settings
    model: ModelClient
    http: httpx.AsyncClient


@asynccontextmanager
async def open_resources(settings: Settings) -> AsyncIterator[Resources]:
    """Open the clients; without a model endpoint, serve the scripted model as well."""
    async with AsyncExitStack() as stack:
        base_url = settings.model_base_url
        if not base_url:
            base_url = await stack.enter_async_context(serve_scripted_model())
        model = ModelClient(settings, base_url)
        stack.push_async_callback(model.close)
        http = await stack.enter_async_context(httpx.AsyncClient(timeout=settings.tool_timeout))
        yield Resources(settings, model, http)


async def ask_model(step: AskModel, call: Call) -> ModelReply:
    """One model call; see `investigation.model` for what becomes of its errors."""
    resources: Resources = call.resources
    call.beat("asked the model")
    return await resources.model.ask(step, call)


async def call_tool(step: CallTool, call: Call) -> ToolResult:
    """One tool call, at the tool service or in a process of this worker's own."""
    resources: Resources = call.resources
    settings = resources.settings
    call.beat(f"called {step.tool}")
    if not settings.tools_url:
        return await run_tool_apart(
            step.corpus,
            step.tool,
            step.arguments,
            root=settings.corpus_root,
            seconds=math.ceil(settings.tool_timeout),
            progress=lambda read: call.beat(f"{step.tool}: {read} bytes read"),
        )
    if not step.tool.replace("_", "").isalnum():  # a name that the model invented; not a path
        return ToolResult(ok=False, text=f"there is no tool {step.tool!r}")
    body: dict[str, JsonValue] = {"corpus": step.corpus, "arguments": step.arguments}
    answer = await _post(f"{settings.tools_url.rstrip('/')}/{step.tool}", body, call)
    try:
        result = ToolResult.model_validate(answer)
    except ValidationError as error:
        raise ServiceUnavailable(f"{settings.tools_url}: not a tool result: {error}") from None
    limit = QUOTES if step.tool == "quote" else OUTPUT
    return result.model_copy(update={"text": result.text[:limit]})


async def publish_report(step: PublishReport, call: Call) -> Published:
    """Hand over the report: post it, or write it to a file; nowhere when neither is set."""
    resources: Resources = call.resources
    settings = resources.settings
    if settings.reports_url:
        await _post(settings.reports_url, step.report.model_dump(mode="json"), call)
        return Published(where=settings.reports_url)
    if settings.reports_dir:
        return Published(where=str(write_report(settings.reports_dir, call.run_id, step.report)))
    return Published(where="")


def write_report(folder: Path, run_id: str, report: Report) -> Path:
    """Write a report under its run's name: complete or not at all, and again without harm."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{run_id.replace(':', '_')}.json"
    text = report.model_dump_json(indent=2) + "\n"
    with tempfile.TemporaryDirectory(prefix=".writing-", dir=folder) as scratch:
        complete = Path(scratch, path.name)
        with complete.open("w", encoding="utf-8") as handle:
            handle.write(text)
            handle.flush()
            os.fsync(handle.fileno())
        complete.replace(path)
    return path


async def _post(url: str, body: Any, call: Call) -> Any:
    """Post JSON and return the JSON answer. 4xx is permanent, everything else worth a retry."""
    resources: Resources = call.resources
    headers = identity_headers(call) if resources.settings.identify_calls else {}
    try:
        response = await resources.http.post(url, json=body, headers=headers)
    except httpx.HTTPError as error:
        raise ServiceUnavailable(f"cannot reach {url}: {error or type(error).__name__}") from None
    try:
        answer = response.json()
    except ValueError:
        answer = None
    if response.is_success:
        return answer
    refuse_if_stale(response.status_code, answer, call)
    message = f"{url} answered {response.status_code}: {response.text[:300]}"
    if 400 <= response.status_code < 500 and response.status_code not in (408, 409, 429):
        raise PermanentFailure(message)
    raise ServiceUnavailable(message)
