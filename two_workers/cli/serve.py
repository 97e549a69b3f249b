"""`two-workers serve`: the HTTP service and its web page, on either engine."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import click

from two_workers.apps import load_app
from two_workers.cli.options import engine_option
from two_workers.cli.process import run_async, stop_on_signals
from two_workers.engines import engine_plugin, server_for
from two_workers.errors import BadInput


@click.command()
@engine_option
@click.option(
    "--app",
    default="investigation.app:APP",
    show_default=True,
    metavar="MODULE:NAME",
    help="The app to serve.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Another one needs API keys.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(0, 65535))
@click.option("--demo", is_flag=True, help="Start workers too, to kill and pause from the page.")
@click.option("--workers", default=3, show_default=True, help="How many, with --demo.")
@click.option("--log-level", default="WARNING", show_default=True, help="DEBUG to ERROR.")
def serve(
    engine: str, app: str, host: str, port: int, demo: bool, workers: int, log_level: str
) -> None:
    """Serve an app over HTTP, with a web page, until SIGTERM or Ctrl-C.

    With --demo it needs nothing else: it starts the engine's own server if none is configured, and
    real worker processes. Callers, limits and sizes are set by SERVICE_* variables.
    """
    run_async(_serve(engine, app, host, port, workers if demo else 0, log_level))


async def _serve(
    engine_name: str, app_path: str, host: str, port: int, workers: int, log_level: str
) -> None:
    _need_the_extra()
    from investigation.service.access import Redactor, check_exposure, secrets_in
    from investigation.service.application import create_service
    from investigation.service.demo import demo_workers
    from investigation.service.settings import load_settings, tenants_by_key

    settings, plugin, app = load_settings(), engine_plugin(engine_name), load_app(app_path)
    check_exposure(host, has_keys=bool(tenants_by_key(settings)), demo=workers > 0)
    redactor = Redactor(secrets_in(os.environ))
    _log(log_level, redactor)
    if not workers and not plugin.is_configured(os.environ):
        raise BadInput(
            f"no server for engine {engine_name!r}: set DATABASE_URL or TEMPORAL_ADDRESS, "
            "or add --demo, which starts one"
        )
    stop = stop_on_signals()
    async with AsyncExitStack() as stack:
        listener = stack.enter_context(_listening(host, port))
        environment = {**DEMO_SETTINGS, **os.environ} if workers else os.environ
        env = await stack.enter_async_context(server_for(plugin, environment))
        engine = await stack.enter_async_context(plugin.connect(plugin.settings(env)))
        demo = (
            await stack.enter_async_context(demo_workers(engine_name, app_path, env, count=workers))
            if workers
            else None
        )
        service = create_service(engine, app, settings, redactor=redactor, demo=demo)
        await _until_stopped(service, listener, stop, loopback=not tenants_by_key(settings))


DEMO_SETTINGS: Mapping[str, str] = {
    "HAND_ROLLED_LEASE_TTL": "10",
    "HAND_ROLLED_HEARTBEAT_INTERVAL": "1",
    "TEMPORAL_VERSION_HEARTBEAT_TIMEOUT": "10",
}
"""Ownership short enough to watch it end, unless the environment says otherwise."""


def _need_the_extra() -> None:
    try:
        import fastapi  # noqa: F401  # only whether it is there
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as error:
        raise BadInput(f"serve needs {error.name}: pip install 'two-workers[app]'") from error


def _log(level: str, redactor: logging.Filter) -> None:
    handler = logging.StreamHandler()
    handler.addFilter(redactor)
    logging.basicConfig(
        level=level.upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        handlers=[handler],
    )


@contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        raise BadInput(f"cannot listen on {host} port {port}: {error.strerror}") from error
    with listener:
        yield listener


async def _until_stopped(
    service: Any, listener: socket.socket, stop: asyncio.Event, *, loopback: bool
) -> None:
    import uvicorn
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    class Server(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield  # this command has its own handlers

    if loopback:  # else a web site could point its own name at this address and pass as local
        service.add_middleware(
            TrustedHostMiddleware, allowed_hosts=["localhost", "127.0.0.1", "[::1]"]
        )
    config = uvicorn.Config(service, log_config=None, timeout_graceful_shutdown=3)
    server = Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    host, port = listener.getsockname()[:2]
    click.echo(f"serving on http://{f'[{host}]' if ':' in host else host}:{port}")
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    server.should_exit = True
    stopping.cancel()
    await serving


COMMANDS = [serve]
