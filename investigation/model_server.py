"""Serve the scripted model over the OpenAI chat-completions API, on loopback.

So the offline default goes through the same client, the same HTTP and the same errors as a vendor,
and a vendor is only another base URL. In a worker's own process:

    async with serve_scripted_model() as base_url: ...

or as a process: `python -m investigation.model_server 8080`.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from investigation.scripted_model import respond


async def chat_completions(request: Request) -> JSONResponse:
    """`POST /v1/chat/completions`."""
    try:
        answer = respond(await request.json())
    except (ValueError, KeyError, TypeError) as error:
        complaint = {"message": f"not a chat completion request: {error}", "code": "bad_request"}
        return JSONResponse({"error": complaint}, status_code=400)
    return JSONResponse(answer)


APPLICATION = Starlette(routes=[Route("/v1/chat/completions", chat_completions, methods=["POST"])])


class _Server(uvicorn.Server):
    """A server inside someone else's process: signals are that process's business."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serve_scripted_model() -> AsyncIterator[str]:
    """Serve on a free loopback port; yields the base URL, stops on leaving."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = _Server(uvicorn.Config(APPLICATION, log_level="warning", lifespan="off"))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"  # already listening: no wait
    finally:
        server.should_exit = True
        await serving


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Serve the scripted model on loopback.")
    parser.add_argument("port", type=int)
    uvicorn.run(APPLICATION, host="127.0.0.1", port=parser.parse_args().port)
