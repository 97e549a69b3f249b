"""A recording as lines to read: what of it shows one concept, and in which words.

The stored moments stay as they are. Here the columns and events that a concept asks for are picked,
a row is shown when one of those columns has changed, and everything is said in a few words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from comparison.mapping.concept import Concept
from comparison.mapping.recording import Moment, Side

Place = Literal["harness", "world", "engine"]
"""Where a line comes from: what the scenario did, what an effect noted, what the engine shows."""

MOST = 32
"""Lines that a timeline may have; longer ones are cut, and say so."""


@dataclass(frozen=True)
class Line:
    """One line: seconds since the scenario began, where it was seen, and the words."""

    t: float
    place: Place
    text: str


def lines(side: Side, concept: Concept) -> list[Line]:
    """The timeline of one run of the scenario, as far as it shows `concept`."""
    told = [*_told(side, side.story or _first(side), concept)]
    if len(told) <= MOST:
        return told
    left = len(told) - MOST + 1
    return [*told[: MOST - 1], Line(told[MOST - 1].t, "harness", f"… and {left} more lines")]


def _first(side: Side) -> str:
    """The first run of which the engine knows; one that was rolled back it does not."""
    return next((m.run for m in side.moments if m.kind in ("row", "event")), "")


def _told(side: Side, run: str, concept: Concept) -> Iterator[Line]:
    steps = _step_of_event(side.moments)
    shown: dict[str, Any] = {}
    named = list(dict.fromkeys(m.run for m in side.moments if m.run))[:2]
    for m in side.moments:
        if m.run not in ("", run) and not (m.kind == "action" and m.run in named):
            continue
        match m.kind:
            case "action":
                yield Line(m.t, "harness", m.what)
            case "call":
                yield Line(m.t, "world", _call(m))
            case "row":
                picked = {name: m.data.get(name) for name in concept.evidence.columns}
                if picked and picked != shown:
                    shown = picked
                    yield Line(m.t, "engine", f"row: {_row(picked)}")
            case "event" if m.what in concept.evidence.events:
                yield Line(m.t, "engine", _event(m, steps))
            case "pending" if not _seen_already(m, shown):
                shown[f"pending {m.what}"] = _without_beat(m)
                yield Line(m.t, "engine", _pending(m))
            case "owned" if "lease_generation" in concept.evidence.columns:
                yield Line(m.t, "engine", _owned(m))
            case "log":
                yield Line(m.t, "engine", f"log of {_STAMP.sub('', m.what)}")
            case _:
                continue


_STAMP = re.compile(r"\d{4}-\d\d-\d\d[T ][\d:,.]+Z? +(WARN(ING)?|ERROR|INFO) *")


def _owned(m: Moment) -> str:
    by = f" by {m.data['owner']}" if m.data["owner"] else ""
    why = f" ({m.data['reason']})" if m.data["reason"] else ""
    return f"ownership: {m.what}{by}, generation {m.data['lease_generation']}{why}"


def _call(m: Moment) -> str:
    event, _, step = m.what.rpartition(" ")
    words = {"begin": "begins", "end": "ends", "told to stop": "is told to stop"}
    return f"{m.data['worker']} {words.get(event, event)} step {step}"


_COLUMNS: dict[str, Callable[[Any], str]] = {
    "status": str,
    "lease_owner": lambda v: f"owner {v}" if v else "no owner",
    "lease_generation": lambda v: f"generation {v}",
    "lease_expires_at": lambda v: f"lease until {v:.2f}" if v is not None else "no lease",
    "heartbeat_at": lambda v: f"beat {v:.2f}" if v is not None else "no beat",
    "progress_at": lambda v: f"progress {v:.2f}" if v is not None else "no progress",
    "cancel_requested": lambda v: "cancel requested" if v else "",
    "holds_slot": lambda v: "holds a slot" if v else "",
    "suspect": lambda v: "suspect" if v else "",
    "tenant": lambda v: f"tenant {v}",
    "mismatch": lambda v: "mismatch noted" if v else "",
    "failure": lambda v: str(v) if v else "",
}


def _row(picked: dict[str, Any]) -> str:
    words = (_COLUMNS.get(name, lambda v, n=name: f"{n} {v}")(v) for name, v in picked.items())
    return ", ".join(word for word in words if word)


def _step_of_event(moments: Iterable[Moment]) -> dict[Any, Any]:
    """The step of each ActivityTaskScheduled by its event id: later events only name that."""
    return {
        (m.run, m.data["event_id"]): m.data["activity_id"]
        for m in moments
        if m.kind == "event" and "activity_id" in m.data
    }


def _event(m: Moment, steps: dict[Any, Any]) -> str:
    name = "".join(word.capitalize() for word in m.what.split("_"))
    scheduled = (m.run, m.data.get("scheduled_event_id", m.data["event_id"]))
    details = [
        f"step {steps[scheduled]}" if scheduled in steps else "",
        f"attempt {m.data['attempt']}" if "attempt" in m.data and "Started" in name else "",
        f"by {m.data['identity']}" if len(str(m.data.get("identity", ""))) == 1 else "",
        _why(m.data.get("failure") or m.data.get("last_failure")),
    ]
    return " ".join([name, *(d for d in details if d)])


def _without_beat(m: Moment) -> dict[str, Any]:
    return {k: v for k, v in m.data.items() if k != "heartbeat_at"}


def _seen_already(m: Moment, shown: dict[str, Any]) -> bool:
    return bool(shown.get(f"pending {m.what}") == _without_beat(m))


def _pending(m: Moment) -> str:
    by = f" on {m.data['worker']}" if m.data.get("worker") else ""
    why = _why(m.data.get("last_failure"))
    state = f"{str(m.data['state']).lower()}, attempt {m.data['attempt']}{by} {why}"
    return f"pending {m.what}: {state}".rstrip()


def _why(failure: object) -> str:
    return f"after: {failure}" if failure else ""
