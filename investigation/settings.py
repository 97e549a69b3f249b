"""Settings of the investigation app, from environment variables `INVESTIGATION_*`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from two_workers import BadInput, MicroUSD


class Settings(BaseSettings):
    """How the app reaches the model, the tools and the place for reports. Durations in seconds."""

    model_config = SettingsConfigDict(env_prefix="INVESTIGATION_", frozen=True, extra="ignore")

    model_base_url: str = Field(default="", pattern=r"^(https?://.*)?$")
    """An OpenAI-compatible endpoint, such as `https://api.openai.com/v1`. Empty: the scripted
    model, which needs no network and is served by the worker itself."""
    model_api_key: SecretStr = SecretStr("")
    model_name: str = Field(default="scripted", min_length=1)
    model_timeout: float = Field(default=90, gt=0)
    """One model call. Too short, and long answers are paid for and thrown away. An engine's
    progress timeout must be longer: while a call waits for its answer, it makes no progress."""
    max_output_tokens: int = Field(default=4_000, ge=256)
    """Most tokens of one reply. Too low, and reports are cut off and asked for again."""
    max_tokens_name: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    """What the endpoint calls that limit; older compatible servers know only `max_tokens`."""
    price_in: float = Field(default=2.0, ge=0)
    """US dollars per million tokens sent; equally micro-dollars per token."""
    price_out: float = Field(default=8.0, ge=0)
    """US dollars per million tokens received."""

    tools_url: str = Field(default="", pattern=r"^(https?://.*)?$")
    """Where tools are called instead of in this worker: `POST {tools_url}/{tool}`."""
    tool_timeout: float = Field(default=60, gt=0)
    """One tool call. Too short, and large files are called too slow on a busy machine."""
    corpus_root: Path | None = None
    """When set, no corpus outside this folder is read."""

    reports_url: str = Field(default="", pattern=r"^(https?://.*)?$")
    """Where finished reports are posted."""
    reports_dir: Path | None = None
    """Where finished reports are written, one file for each run, when there is no `reports_url`."""

    identify_calls: bool = False
    """Send `X-Run`, `X-Key`, `X-Fence` and others with every call to the outside."""

    def price(self, tokens_in: int, tokens_out: int) -> MicroUSD:
        """What a model call costs, rounded up to whole micro-dollars."""
        return math.ceil(tokens_in * self.price_in + tokens_out * self.price_out)


def load_settings() -> Settings:
    """Settings from the environment. Raises `BadInput` that names the variables at fault."""
    try:
        return Settings()
    except ValidationError as error:
        faults = "; ".join(
            f"INVESTIGATION_{'_'.join(map(str, fault['loc'])).upper()}: {fault['msg']}"
            for fault in error.errors(include_url=False, include_input=False)
        )
        raise BadInput(f"bad settings: {faults}") from None
