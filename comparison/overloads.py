"""Overload as a part of a full comparison: each arm once without limits, and once within them.

<directory>/overload/<arm>/
    overload.json           what `breakers.overload` measured
    without/, within/       ledger.jsonl, logs/
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pydantic import TypeAdapter

from comparison.arms import Arm
from comparison.breakers.overload import WITH, WITHOUT, Overload, overload
from two_workers import BadInput

LIMITS = {"without": WITHOUT, "within": WITH}
_OVERLOADS = TypeAdapter(dict[str, Overload])


async def overload_all(
    arms: Sequence[Arm], directory: Path, say: Callable[[str, str], None]
) -> None:
    """Load every arm that was not loaded yet; one that knows no limits, without them only."""
    for arm in arms:
        place = directory / "overload" / arm.name
        if (place / "overload.json").exists():
            continue
        shutil.rmtree(place, ignore_errors=True)  # half done when it was interrupted
        place.mkdir(parents=True)
        found = {}
        for name, limits in LIMITS.items():
            say(arm.name, f"twice its capacity arrives, {name} limits")
            try:
                found[name] = await overload(arm, place / name, limits)
            except BadInput as refusal:
                say(arm.name, str(refusal))
            except TimeoutError:  # hours of other figures must not be lost for this one
                say(arm.name, "stood still for too long; not measured")
        (place / "overload.json").write_bytes(_OVERLOADS.dump_json(found, indent=1))


def read_overloads(directory: Path, arm: str) -> Mapping[str, Overload]:
    """What was measured of an arm, by `without` and `within`; empty if nothing was."""
    stored = directory / "overload" / arm / "overload.json"
    return _OVERLOADS.validate_json(stored.read_bytes()) if stored.exists() else {}
