"""The parts of one process: the engine's client, the demo's workers, the HTTP server."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass

import uvicorn
from fastapi import FastAPI
from starlette.middleware.trustedhost import TrustedHostMiddleware

from investigation.service.access import Redactor, check_exposure
from investigation.service.application import create_service
from investigation.service.demo import demo_workers
from investigation.service.settings import load_settings, tenants_by_key
from two_workers import BadInput, engine_plugin, load_app
from two_workers.engines import server_for

DEMO_SETTINGS: Mapping[str, str] = {
    "HAND_ROLLED_LEASE_TTL": "10",
    "HAND_ROLLED_HEARTBEAT_INTERVAL": "1",
    "TEMPORAL_VERSION_ARM": "tuned",
    "TEMPORAL_VERSION_HEARTBEAT_TIMEOUT": "10",
    "TEMPORAL_VERSION_HEARTBEAT_THROTTLE": "1",
}
"""Ownership short enough to watch it end, unless the environment says otherwise."""

DRAIN = 3  # seconds that open requests get at the end; an event stream never ends by itself


@dataclass(frozen=True, kw_only=True)
class Serving:
    """What to serve, and where. A demo has `workers`; each step then takes `pace` seconds more."""

    engine: str
    app: str
    host: str
    port: int
    workers: int = 0
    pace: float = 0.0


async def serve(
    serving: Serving,
    env: Mapping[str, str],
    redactor: Redactor,
    *,
    stop: asyncio.Event,
    ready: Callable[[str], None],
) -> None:
    """Serve until `stop` is set. Tells `ready` the address. Raises `BadInput`."""
    settings = load_settings()
    has_keys = bool(tenants_by_key(settings))
    app, plugin = load_app(serving.app), engine_plugin(serving.engine)
    check_exposure(serving.host, has_keys=has_keys, demo=serving.workers > 0)
    if serving.workers:
        env = {**DEMO_SETTINGS, **env}
    elif not plugin.is_configured(env):
        raise BadInput(
            f"no server for engine {serving.engine!r}: set DATABASE_URL or TEMPORAL_ADDRESS, "
            "or add --demo, which starts one"
        )
    async with AsyncExitStack() as stack:
        listener = stack.enter_context(_listening(serving.host, serving.port))
        env = await stack.enter_async_context(server_for(plugin, env))
        engine = await stack.enter_async_context(plugin.connect(plugin.settings(env)))
        demo = await stack.enter_async_context(
            demo_workers(serving.engine, serving.app, env, count=serving.workers, pace=serving.pace)
        )
        service = create_service(
            engine, app, settings, redactor=redactor, demo=demo if serving.workers else None
        )
        if not has_keys:
            _only_by_a_local_name(service)
        ready(await stack.enter_async_context(_answering(service, listener, stop)))
        await stop.wait()


def _only_by_a_local_name(service: FastAPI) -> None:
    """Else a web site could point its own name at this address, and pass for this page."""
    local = ["localhost", "127.0.0.1", "[::1]"]
    service.add_middleware(TrustedHostMiddleware, allowed_hosts=local)


@contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        raise BadInput(f"cannot listen on {host} port {port}: {error.strerror}") from error
    with listener:
        yield listener


class _Server(uvicorn.Server):
    """A server inside someone else's process: signals are that process's business."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def _answering(
    service: FastAPI, listener: socket.socket, stop: asyncio.Event
) -> AsyncIterator[str]:
    """Answer requests inside this block; if the server ends by itself, `stop` is set."""
    config = uvicorn.Config(service, log_config=None, timeout_graceful_shutdown=DRAIN)
    server = _Server(config)
    host, port = listener.getsockname()[:2]
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    serving.add_done_callback(lambda _: stop.set())
    try:
        yield f"http://{f'[{host}]' if ':' in host else host}:{port}"
    finally:
        server.should_exit = True
        await serving
