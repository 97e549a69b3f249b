"""What a comparison notes of itself, in `experiment.json` beside its evidence.

It is read before anything is judged. What contradicts itself is refused: evidence that belongs to
another experiment than the noted one shows nothing about either.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from comparison.plan import Plan
from two_workers import BadInput

Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Part(BaseModel):
    """On what, with which versions and in how many seconds one part of a comparison was made."""

    model_config = ConfigDict(frozen=True)
    environment: dict[str, str]
    seconds: Seconds


class Noted(BaseModel):
    """The whole file. `parts` are those that noted their making: the scene, and each campaign."""

    model_config = ConfigDict(frozen=True)
    seed: Annotated[int, Field(ge=0)]
    arms: Annotated[tuple[str, ...], Field(min_length=1)]
    seconds: Seconds
    environment: dict[str, str]
    settings: dict[str, dict[str, str]]
    campaigns: Annotated[dict[str, Plan], Field(min_length=1)]
    parts: dict[str, Part] = {}

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Noted:
        planned = next(iter(self.campaigns.values())).seed
        if self.seed != planned:
            raise ValueError(f"its seed is {self.seed}, its first campaign's is {planned}")
        if sorted(self.arms) != sorted(self.settings):
            raise ValueError(
                f"its arms are {', '.join(self.arms)}, but it has settings of "
                f"{', '.join(self.settings)}"
            )
        return self


def read_noted(directory: Path) -> Noted:
    """The experiment noted in `directory`. Raises `BadInput` when there is none that holds."""
    place = directory / "experiment.json"
    try:
        noted = json.loads(place.read_text())
        return Noted.model_validate(noted)
    except ValidationError as error:
        if error.errors()[0]["loc"][:1] == ("campaigns",) and "campaigns" in noted:
            raise BadInput(
                f"{place}: planned by another version of this program ({first_problem(error)})"
            ) from error
        raise not_whole(directory, f"{place.name}: {first_problem(error)}") from error
    except OSError as error:
        raise not_whole(directory, f"{place.name}: {error.strerror}") from error
    except ValueError as error:
        raise not_whole(directory, f"{place.name}: {error}") from error


def not_whole(directory: Path, why: str) -> BadInput:
    """The error of a directory that does not hold what it should."""
    return BadInput(f"{directory}: not the results of a whole comparison: {why}")


def first_problem(error: ValidationError) -> str:
    """What is wrong first, in one line."""
    first = error.errors(include_url=False)[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}" if where else first["msg"]
