"""Every statement of this engine by name, with its comment and where it stands.

For documents and commands that show a statement: they quote the code, so they cannot go stale.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

from hand_rolled import (
    claim,
    crash,
    heartbeat,
    journal,
    lifecycle,
    limits,
    operations,
    progress,
    reclaim,
    story,
    waits,
)
from two_workers.errors import BadInput

MODULES: tuple[ModuleType, ...] = (
    story, claim, reclaim, heartbeat, journal,
    waits, progress, lifecycle, limits, crash, operations,
)  # fmt: skip

_CONSTANT = re.compile(
    r"^(?P<comment>(?:# [^\n]*\n)*)"
    r"(?P<name>[A-Z][A-Z_]+) = \"{1,3}(?=\s*(?:SELECT|WITH|UPDATE|INSERT|DELETE))",
    re.MULTILINE,
)


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One named statement. `where` is `hand_rolled/claim.py:33`."""

    name: str
    text: str
    comment: str
    where: str


@cache
def statements() -> dict[str, Statement]:
    """All named statements, in reading order; `CLAIM_WITHIN_LIMITS` is `claim-within-limits`."""
    found: dict[str, Statement] = {}
    for module in MODULES:
        path = Path(module.__file__ or "")
        source = path.read_text()
        for match in _CONSTANT.finditer(source):
            name = match["name"].lower().replace("_", "-")
            comment = " ".join(line.removeprefix("# ") for line in match["comment"].splitlines())
            line = source.count("\n", 0, match.start("name")) + 1
            found[name] = Statement(
                name=name,
                text=str(getattr(module, match["name"])).strip(),
                comment=comment,
                where=f"hand_rolled/{path.name}:{line}",
            )
    return found


def sql_of(name: str) -> Statement:
    """One statement. Raises `BadInput` with the names that exist."""
    try:
        return statements()[name]
    except KeyError:
        raise BadInput(f"no statement {name!r}; there are: {', '.join(statements())}") from None
