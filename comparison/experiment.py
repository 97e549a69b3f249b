"""What a comparison notes of itself, beside its evidence.

    config.json         what was to be done: seed, arms, their settings, samples, plans
    environment.json    on what, with which versions, in how many seconds it was done

Both are read before anything is judged. What contradicts itself is refused: evidence that belongs
to another experiment than the noted one shows nothing about either. Earlier comparisons have one
file in their place, `experiment.json`, and are read from that.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, computed_field, model_validator

from comparison.plan import Plan
from two_workers import BadInput

CONFIG, ENVIRONMENT, EARLIER = "config.json", "environment.json", "experiment.json"
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Part(BaseModel):
    """On what, with which versions and in how many seconds one part of a comparison was made."""

    model_config = ConfigDict(frozen=True)
    environment: dict[str, str]
    seconds: Seconds


class Config(BaseModel):
    """What was to be done. `campaigns` are plans by the name of their folder."""

    model_config = ConfigDict(frozen=True)
    seed: Annotated[int, Field(ge=0)]
    arms: Annotated[tuple[str, ...], Field(min_length=1)]
    settings: dict[str, dict[str, str]]
    campaigns: Annotated[dict[str, Plan], Field(min_length=1)]

    @computed_field  # type: ignore[prop-decorator] # as pydantic documents it for mypy
    @property
    def samples(self) -> dict[str, int]:
        """How often each fault is planned at each crash point, on each arm."""
        faults = (fault for plan in self.campaigns.values() for fault in plan.faults)
        return dict(Counter(f"{fault.kind} at {fault.point}" for fault in faults))

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        planned = next(iter(self.campaigns.values())).seed
        if self.seed != planned:
            raise ValueError(f"its seed is {self.seed}, its first campaign's is {planned}")
        if sorted(self.arms) != sorted(self.settings):
            raise ValueError(
                f"its arms are {', '.join(self.arms)}, but it has settings of "
                f"{', '.join(self.settings)}"
            )
        return self


class Making(BaseModel):
    """How it was done. `parts` are those that noted their making: the scene, and each campaign."""

    model_config = ConfigDict(frozen=True)
    seconds: Seconds
    environment: dict[str, str]
    parts: dict[str, Part] = {}


class Noted(Config, Making):
    """Both together."""

    def write(self, directory: Path) -> None:
        """Keep it in its two files."""
        made = set(Making.model_fields)
        (directory / CONFIG).write_text(self.model_dump_json(indent=1, exclude=made))
        (directory / ENVIRONMENT).write_text(self.model_dump_json(indent=1, include=made))
        (directory / EARLIER).unlink(missing_ok=True)


def read_noted(directory: Path) -> Noted:
    """The experiment noted in `directory`. Raises `BadInput` when there is none that holds."""
    files: tuple[str, ...] = CONFIG, ENVIRONMENT
    if (directory / EARLIER).exists() and not (directory / CONFIG).exists():
        files = (EARLIER,)
    found: dict[str, Any] = {}
    try:
        for name in files:
            found |= _read(directory / name)
        return Noted.model_validate(found)
    except ValidationError as error:
        if error.errors()[0]["loc"][:1] == ("campaigns",) and "campaigns" in found:
            raise BadInput(
                f"{directory / files[0]}: planned by another version of this program "
                f"({first_problem(error)})"
            ) from error
        raise not_whole(directory, f"{' and '.join(files)}: {first_problem(error)}") from error


def _read(place: Path) -> dict[str, Any]:
    """The JSON object in a file. Raises `BadInput`."""
    try:
        found = json.loads(place.read_text())
    except OSError as error:
        raise not_whole(place.parent, f"{place.name}: {error.strerror}") from error
    except ValueError as error:
        raise not_whole(place.parent, f"{place.name}: {error}") from error
    if not isinstance(found, dict):
        raise not_whole(place.parent, f"{place.name}: expected an object, found a list or a value")
    return found


def not_whole(directory: Path, why: str) -> BadInput:
    """The error of a directory that does not hold what it should."""
    return BadInput(f"{directory}: not the results of a whole comparison: {why}")


def first_problem(error: ValidationError) -> str:
    """What is wrong first, in one line."""
    first = error.errors(include_url=False)[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}" if where else first["msg"]
