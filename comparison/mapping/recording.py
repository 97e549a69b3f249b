"""What a scenario leaves behind: a timeline for each engine, the facts, and what was checked.

    evidence/pause.json          both engines, as they are
    evidence/broken-fence.json   the table with one line removed, and the check that convicts it

Times are seconds since the scenario began. Worker ids are replaced by the letters A, B, C in the
order in which the workers were started; nothing else is changed.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue

EVIDENCE = Path(__file__).parent / "evidence"

Kind = Literal["action", "call", "row", "owned", "recorded", "event", "pending", "log"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Moment(_Frozen):
    """Something that was seen, and where.

    `action` what the scenario did · `call` an effect's own note, outside the engine · `row` the
    run's row, each time it had changed · `owned` a row of `ownership` · `recorded` a row of
    `journal` · `event` an event of history · `pending` a pending activity as `describe` shows it,
    each time it had changed · `log` a line that a worker wrote.
    """

    t: float
    kind: Kind
    run: str
    what: str
    data: dict[str, JsonValue] = {}


class Check(_Frozen):
    """A statement about the run that must hold, and the invariant that it belongs to."""

    invariant: str
    says: str
    holds: bool
    found: str


class Side(_Frozen):
    """One scenario on one engine. `story` is the run that its timeline is about, or empty."""

    engine: str
    story: str = ""
    settings: dict[str, str]
    moments: tuple[Moment, ...]
    facts: dict[str, JsonValue]
    checks: tuple[Check, ...]

    @property
    def failed(self) -> list[Check]:
        """The checks that do not hold."""
        return [check for check in self.checks if not check.holds]


class Recording(_Frozen):
    """One scenario, as it ran on `recorded_at`."""

    scenario: str
    title: str
    recorded_at: datetime
    versions: dict[str, str]
    sides: tuple[Side, ...]

    def side(self, engine: str) -> Side | None:
        """The scenario on that engine, if it was run there."""
        return next((side for side in self.sides if side.engine == engine), None)

    def write(self, directory: Path = EVIDENCE, *, name: str | None = None) -> Path:
        """Keep it as `directory/name.json`."""
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"{name or self.scenario}.json"
        path.write_text(_lines(self.model_dump(mode="json")) + "\n")
        return path


def _lines(value: object, depth: int = 3) -> str:
    """JSON with one moment per line: a recording that is made anew shows in a diff what changed."""
    match value:
        case dict() if depth and value:
            inner = [
                f"{json.dumps(k)}: {_lines(v, depth - (k != 'sides'))}" for k, v in value.items()
            ]
            return "{\n" + ",\n".join(inner) + "\n}"
        case list() if depth and value:
            return "[\n" + ",\n".join(_lines(item, depth - 1) for item in value) + "\n]"
        case _:
            return json.dumps(value, ensure_ascii=False)


def stored(name: str) -> Recording | None:
    """The stored recording of a scenario, or of `broken-<guard>`."""
    path = EVIDENCE / f"{name}.json"
    return Recording.model_validate_json(path.read_text()) if path.exists() else None
