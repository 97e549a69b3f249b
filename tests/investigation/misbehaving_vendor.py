"""A model endpoint that misbehaves on order, over real HTTP.

`queue(...)` says how the next calls are answered; when the queue is empty the scripted model
answers, so a run can go wrong at one call and well afterwards.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from investigation.model_server import _Server
from investigation.scripted_model import respond

Behaviour = Callable[[Request], Awaitable[Response]]


class Vendor:
    """`base_url` to reach it; `requests` has what came in, with the headers."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self.requests: list[tuple[dict[str, Any], dict[str, str]]] = []
        self._behaviours: deque[Behaviour] = deque()

    def queue(self, *behaviours: Behaviour) -> None:
        self._behaviours.extend(behaviours)

    async def answer(self, request: Request) -> Response:
        body = await request.json()
        self.requests.append((body, dict(request.headers)))
        if self._behaviours:
            return await self._behaviours.popleft()(request)
        return JSONResponse(respond(body))


@asynccontextmanager
async def vendor() -> AsyncIterator[Vendor]:
    listener = socket.create_server(("127.0.0.1", 0))
    it = Vendor(f"http://127.0.0.1:{listener.getsockname()[1]}/v1")
    routes = [Route("/v1/chat/completions", it.answer, methods=["POST"])]
    config = uvicorn.Config(
        Starlette(routes=routes),
        log_level="critical",
        lifespan="off",
        timeout_graceful_shutdown=1,
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield it
    finally:
        server.should_exit = True
        await serving


def status(code: int, error: Any = None, headers: dict[str, str] | None = None) -> Behaviour:
    async def behave(_: Request) -> Response:
        body = {"error": error} if error is not None else {}
        return JSONResponse(body, status_code=code, headers=headers)

    return behave


def raw(content: bytes, content_type: str = "application/json") -> Behaviour:
    async def behave(_: Request) -> Response:
        return Response(content, media_type=content_type)

    return behave


def completion(**message: Any) -> Behaviour:
    """A well-formed reply with this message; `finish` and `usage` may be set too."""
    finish = message.pop("finish", "stop")
    usage = message.pop("usage", {"prompt_tokens": 100, "completion_tokens": 10})
    body = {
        "model": "vendor-1",
        "choices": [{"index": 0, "finish_reason": finish, "message": message}],
        "usage": usage,
    }
    return raw(json.dumps(body).encode())


def call(name: str, arguments: Any, call_id: str = "c1") -> dict[str, Any]:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


async def hang(request: Request) -> Response:
    """No answer while the client waits."""
    while not await request.is_disconnected():
        await asyncio.sleep(0.02)
    return Response()
