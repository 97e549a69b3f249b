"""The prices that the report begins with, each with its source and its date: `prices.toml`."""

from __future__ import annotations

import tomllib
from datetime import date
from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Input(BaseModel):
    """One number of the reader's calculation. Without a source it is a placeholder."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z_]+$")
    label: str
    value: float = Field(ge=0)
    source: str | None = None
    read: date | None = None
    note: str | None = None

    @model_validator(mode="after")
    def _dated(self) -> Input:
        if (self.source is None) != (self.read is None):
            raise ValueError(f"{self.name}: a source goes with the day on which it was read")
        return self

    @property
    def origin(self) -> str:
        """Where the number comes from, and what is to be known about it."""
        said = [f"{self.source}, read {self.read}"] if self.source else []
        return ": ".join([*said, self.note] if self.note else said)


@cache
def inputs() -> tuple[Input, ...]:
    """All numbers, in the order of the page."""
    text = files("comparison").joinpath("prices.toml").read_text()
    return tuple(Input.model_validate(entry) for entry in tomllib.loads(text)["input"])
