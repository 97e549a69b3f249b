"""The one place where a Temporal client is made, for engine, worker, tests and Replayer.

Address, TLS, API key, namespace and profile come from `temporalio.envconfig` alone, so the dev
server, a cluster of one's own and Temporal Cloud differ by environment variables.
"""

from __future__ import annotations

import dataclasses

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import DataConverter
from temporalio.envconfig import ClientConfig

from temporal_version.settings import Settings
from two_workers.errors import BadInput, EngineUnavailable


async def connect_client(settings: Settings, *, identity: str | None = None) -> Client:
    """A connected client. Raises `EngineUnavailable` when no server answers."""
    try:
        config = ClientConfig.load_client_connect_config(
            override_env_vars=dict(settings.connection)
        )
    except (RuntimeError, ValueError, OSError) as error:
        raise BadInput(f"Temporal client configuration: {error}") from error
    address = config.get("target_host") or "localhost:7233"
    config["target_host"] = address
    try:
        return await Client.connect(
            **config, identity=identity, data_converter=data_converter(settings)
        )
    except RuntimeError as error:
        raise EngineUnavailable(
            f"no Temporal server answers at {address}: {first_line(error)}; "
            "check TEMPORAL_ADDRESS or the profile"
        ) from error


def data_converter(settings: Settings) -> DataConverter:
    """Pydantic as the codec."""
    return dataclasses.replace(pydantic_data_converter)


def first_line(error: BaseException) -> str:
    """An error as one line."""
    return (str(error).splitlines() or [type(error).__name__])[0]
