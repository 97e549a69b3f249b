"""Overload as a part of a full comparison: each arm once without limits, and once within them.

<directory>/overload/<arm>/
    overload.json           what `breakers.overload` measured
    without/, within/       ledger.jsonl, logs/
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

from pydantic import TypeAdapter

from comparison.arms import Arm
from comparison.breakers.overload import WITH, WITHOUT, Overload, overload
from two_workers import BadInput

LIMITS = {"without": WITHOUT, "within": WITH}
_OVERLOADS = TypeAdapter(dict[str, Overload])


async def overloads(
    arm: Arm, place: Path, say: Callable[[str], None]
) -> AsyncIterator[tuple[str, Overload]]:
    """Load an arm at twice its capacity, without limits and within them, under `place`.

    One that knows no limits is loaded without them only.
    """
    for name, limits in LIMITS.items():
        say(f"twice its capacity arrives, {name} limits")
        try:
            yield name, await overload(arm, place / name, limits)
        except BadInput as refusal:
            say(str(refusal))
        except TimeoutError:  # hours of other figures must not be lost for this one
            say("stood still for too long; not measured")


async def keep_overloads(arm: Arm, directory: Path, say: Callable[[str], None]) -> None:
    """Measure both, for a report on what is under `directory`."""
    place = directory / "overload" / arm.name
    shutil.rmtree(place, ignore_errors=True)  # half done when it was interrupted
    place.mkdir(parents=True)
    found = {name: seen async for name, seen in overloads(arm, place, say)}
    (place / "overload.json").write_bytes(_OVERLOADS.dump_json(found, indent=1))


def has_overloads(arm: Arm, directory: Path) -> bool:
    """True when that was done already."""
    return (directory / "overload" / arm.name / "overload.json").exists()


def read_overloads(directory: Path, arm: str, *, made: bool) -> Mapping[str, Overload]:
    """What was measured of an arm, by `without` and `within`; empty if nothing was.

    Raises `OSError` when it is noted as `made`, and gone.
    """
    stored = directory / "overload" / arm / "overload.json"
    return _OVERLOADS.validate_json(stored.read_bytes()) if made or stored.exists() else {}
