"""Settings of the service, from environment variables `SERVICE_*`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from two_workers import BadInput

SHORTEST_KEY = 16


class Settings(BaseSettings):
    """Who may ask, and how much. Durations in seconds."""

    model_config = SettingsConfigDict(env_prefix="SERVICE_", frozen=True, extra="ignore")

    api_keys: SecretStr = SecretStr("")
    """`tenant=key` pairs, separated by commas; a key has at least 16 characters. A caller is the
    tenant whose key it sends. Without any, only loopback may be served, and everybody there is an
    operator who sees all tenants."""
    admission: Literal["queue", "reject"] = "queue"
    """What a start meets when the engine's limits leave no room for it to run at once: it is
    queued, or it is answered by 429."""
    max_queued: int = Field(default=1_000, ge=0, le=10_000)
    """Runs of a tenant that may wait for a worker; a further start is answered by 429."""
    max_request_bytes: int = Field(default=256_000, ge=1_000)
    """A larger request is answered by 413. Temporal refuses payloads above 2 MB in any case."""
    max_streams: int = Field(default=20, ge=1)
    """Open event streams of a tenant. Each one reads its run about twice a second."""
    poll_interval: float = Field(default=0.5, gt=0)
    """Between two looks at a run that somebody follows."""


def load_settings() -> Settings:
    """Settings from the environment. Raises `BadInput` that names the variables at fault."""
    try:
        settings = Settings()
    except ValidationError as error:
        faults = "; ".join(
            f"SERVICE_{'_'.join(map(str, fault['loc'])).upper()}: {fault['msg']}"
            for fault in error.errors(include_url=False, include_input=False)
        )
        raise BadInput(f"bad settings: {faults}") from None
    tenants_by_key(settings)
    return settings


def tenants_by_key(settings: Settings) -> Mapping[str, str]:
    """The tenant of each key. Raises `BadInput`, which never shows a key."""
    tenants: dict[str, str] = {}
    pairs = [pair.strip() for pair in settings.api_keys.get_secret_value().split(",")]
    for position, pair in enumerate(filter(None, pairs), 1):
        tenant, equals, key = pair.partition("=")
        if not (tenant and equals) or len(tenant) > 64 or len(key) < SHORTEST_KEY:
            raise BadInput(
                f"SERVICE_API_KEYS, pair {position}: expected tenant=key with a key of at least "
                f"{SHORTEST_KEY} characters"
            )
        if key in tenants:
            raise BadInput(f"SERVICE_API_KEYS, pair {position}: this key is already given out")
        tenants[key] = tenant
    return tenants
