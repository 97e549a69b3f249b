"""The one place where a Temporal client is made: for engine, worker, Replayer and tests.

Address, TLS, API key, namespace and profile come from `temporalio.envconfig` alone, so the dev
server, a cluster of one's own and Temporal Cloud differ by environment variables.
"""

from __future__ import annotations

import atexit
import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client, Interceptor
from temporalio.envconfig import ClientConfig, ClientConnectConfig
from temporalio.runtime import (
    LogForwardingConfig,
    LoggingConfig,
    PrometheusConfig,
    Runtime,
    TelemetryConfig,
    TelemetryFilter,
)
from temporalio.service import RPCError, RPCStatusCode

from temporal_version.payloads import data_converter
from temporal_version.settings import Settings
from two_workers.errors import BadInput, EngineUnavailable

UNREACHABLE = (
    RPCStatusCode.UNAVAILABLE,
    RPCStatusCode.DEADLINE_EXCEEDED,
    RPCStatusCode.CANCELLED,
    RPCStatusCode.UNAUTHENTICATED,
    RPCStatusCode.PERMISSION_DENIED,
    RPCStatusCode.RESOURCE_EXHAUSTED,
)

EXIT_PAUSE = 0.1
"""Seconds, once, when the process ends. The SDK's Rust threads wake Python for the last time just
when our last await returns; one that still holds the interpreter's lock while it is torn down
aborts the process with SIGABRT (sdk-python#300: seen here at 14 of 80 exits, at none with a pause
of 0.05). Nothing that could be awaited tells when they are through.
"""


async def connect_client(settings: Settings, *, identity: str | None = None) -> Client:
    """A connected client whose namespace exists.

    Raises `BadInput` for a configuration that cannot be read, `EngineUnavailable` when no server
    answers or it refuses us.
    """
    config = _config(settings)
    address = config["target_host"] = config.get("target_host") or "localhost:7233"
    runtime = shared_runtime(settings.prometheus if identity else None)
    try:
        client = await Client.connect(
            **config,
            identity=identity,
            data_converter=data_converter(settings),
            interceptors=_interceptors(settings),
            runtime=runtime,
        )
    except ValueError as error:
        raise BadInput(
            f"TEMPORAL_ADDRESS {address!r}: expected host:port; {_line(error)}"
        ) from error
    except RuntimeError as error:
        raise EngineUnavailable(
            f"no Temporal server answers at {address}: {_line(error)}; "
            "check TEMPORAL_ADDRESS or the profile"
        ) from error
    await _check_namespace(client, address)
    return client


def _config(settings: Settings) -> ClientConnectConfig:
    named = settings.connection.get("TEMPORAL_CONFIG_FILE")
    if named and not Path(named).is_file():
        # The SDK would go on without it, and reach another server than the one that was meant.
        raise BadInput(f"configuration of the Temporal client: no file {named}")
    try:
        return ClientConfig.load_client_connect_config(override_env_vars=dict(settings.connection))
    except (RuntimeError, ValueError, OSError) as error:
        raise BadInput(f"configuration of the Temporal client: {_line(error)}") from error


@contextmanager
def reachable() -> Iterator[None]:
    """Turn "the server is away" and "it refuses us" into `EngineUnavailable`."""
    try:
        yield
    except RPCError as error:
        if error.status not in UNREACHABLE:
            raise
        raise EngineUnavailable(
            f"the Temporal server does not serve us: {error.status.name}: {_line(error)}"
        ) from error


async def _check_namespace(client: Client, address: str) -> None:
    try:
        with reachable():
            await client.workflow_service.describe_namespace(
                DescribeNamespaceRequest(namespace=client.namespace)
            )
    except RPCError as error:
        raise EngineUnavailable(
            f"the Temporal server at {address} has no usable namespace {client.namespace!r}: "
            f"{_line(error)}; check TEMPORAL_NAMESPACE"
        ) from error


@cache
def shared_runtime(prometheus: str | None) -> Runtime:
    """One for each process: it owns threads, and serves the metrics of all its workers.

    The SDK's own default writes its warnings to stdout, where a report or a result may be going.
    """
    atexit.register(time.sleep, EXIT_PAUSE)
    logger = logging.getLogger("temporalio.core")
    telemetry = TelemetryConfig(
        logging=LoggingConfig(
            filter=TelemetryFilter(core_level="WARN", other_level="ERROR"),
            forwarding=LogForwardingConfig(logger, append_target_to_name=False),
        ),
        metrics=PrometheusConfig(bind_address=prometheus) if prometheus else None,
    )
    try:
        return Runtime(telemetry=telemetry)
    except (RuntimeError, ValueError) as error:
        raise BadInput(f"TEMPORAL_VERSION_PROMETHEUS={prometheus}: {_line(error)}") from error


def _interceptors(settings: Settings) -> Sequence[Interceptor]:
    if not settings.otel:
        return []
    try:
        from temporalio.contrib.opentelemetry import TracingInterceptor
    except ModuleNotFoundError as error:
        raise BadInput("tracing needs: pip install 'two-workers[telemetry]'") from error
    return [TracingInterceptor()]


def _line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
