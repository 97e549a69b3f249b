"""What the scripted model has seen so far, read from the messages of its request.

Everything that it later says comes from here, and a line that is not here is not cited.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class LogFile:
    """A file as `list_files` told it."""

    name: str
    lines: int
    problems: int
    first_time: str
    last_time: str

    def overlaps(self, other: LogFile) -> bool:
        """True when both cover a common time. Times with and without a year do not compare."""
        if not (self.first_time and other.first_time):
            return False
        if self.first_time[0].isdigit() != other.first_time[0].isdigit():
            return False
        return self.first_time <= other.last_time and other.first_time <= self.last_time


@dataclass(frozen=True)
class Group:
    """Lines of one shape in one file."""

    file: str
    count: int
    line: int
    last_line: int
    time: str
    last_time: str
    text: str


@dataclass(frozen=True)
class Hits:
    """A search in one file. `complete`: the groups hold all matches, not just the most frequent."""

    file: str
    matches: int
    complete: bool
    groups: tuple[Group, ...]
    values: tuple[tuple[str, int], ...]
    distinct: int


@dataclass(frozen=True)
class Bucket:
    """One step of a histogram."""

    time: str
    count: int
    line: int


@dataclass
class Evidence:
    """All that the messages hold. Searches and histograms are found again by their purpose: the
    script puts it into the id of each call (`survey-words`), as a person would remember it."""

    question: str = ""
    files: list[LogFile] = field(default_factory=list)
    searches: dict[str, list[Hits]] = field(default_factory=dict)
    histograms: dict[str, tuple[int, list[Bucket]]] = field(default_factory=dict)
    windows: dict[str, list[int]] = field(default_factory=dict)
    lines: dict[tuple[str, int], str] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    rounds: int = 0
    must_report: bool = False

    def hits(self, purpose: str, file: str) -> Hits | None:
        """The search for a purpose in a file, if it found something."""
        return next((one for one in self.searches.get(purpose, []) if one.file == file), None)


def read_messages(request: Mapping[str, Any]) -> Evidence:
    """Collect the evidence from a chat-completions request. Raises `TypeError` for another."""
    if not isinstance(request, Mapping):
        raise TypeError("expected a JSON object")
    evidence = Evidence(must_report=isinstance(request.get("tool_choice"), Mapping))
    asked: dict[str, tuple[str, dict[str, Any]]] = {}
    for message in request["messages"]:
        match message["role"]:
            case "user" if not evidence.question:
                evidence.question = message["content"]
            case "assistant":
                evidence.rounds += 1
                for call in message.get("tool_calls") or ():
                    arguments = json.loads(call["function"]["arguments"])
                    asked[call["id"]] = (call["function"]["name"], arguments)
            case "tool":
                name, arguments = asked[message["tool_call_id"]]
                purpose = message["tool_call_id"].partition("/")[2]
                _take_in(evidence, purpose, name, arguments, message["content"])
            case _:
                pass
    return evidence


def _take_in(
    evidence: Evidence, purpose: str, name: str, arguments: Mapping[str, Any], content: str
) -> None:
    try:
        answer = json.loads(content)
    except ValueError:  # an error in words, or an old result that was shortened
        evidence.errors.append(content[:300])
        return
    for entry in (*answer.get("skipped", ()), *answer.get("incomplete", ())):
        evidence.left_out[entry["file"]] = entry["why"]
    match name:
        case "list_files":
            evidence.files = [_file(entry) for entry in answer["files"]]
        case "search":
            found = [_hits(entry) for entry in answer["files"]]
            evidence.searches.setdefault(purpose, []).extend(found)
            for hits in found:
                for group in hits.groups:
                    evidence.lines[group.file, group.line] = group.text
        case "histogram":
            buckets = [Bucket(*row) for row in answer["buckets"]]
            step = answer.get("seconds_per_bucket", 0)
            evidence.histograms[arguments["file"]] = (step, buckets)
        case "read":
            numbers = [row[0] for row in answer["lines"]]
            evidence.windows[purpose] = numbers
            evidence.lines.update(
                {(answer["file"], number): text for number, text in _pairs(answer["lines"])}
            )
        case _:
            pass


def _file(entry: Mapping[str, Any]) -> LogFile:
    return LogFile(
        name=entry["file"],
        lines=entry["lines"],
        problems=entry["warnings_and_errors"],
        first_time=entry["first_time"] or "",
        last_time=entry["last_time"] or "",
    )


def _hits(entry: Mapping[str, Any]) -> Hits:
    groups = tuple(
        Group(
            file=entry["file"],
            count=shape["count"],
            line=shape["first_line"],
            last_line=shape["last_line"],
            time=shape["first_time"] or "",
            last_time=shape["last_time"] or "",
            text=shape["example"],
        )
        for shape in entry["shapes"]
    )
    values = tuple((value, count) for value, count in entry.get("values", ()))
    return Hits(
        file=entry["file"],
        matches=entry["matches"],
        complete=sum(group.count for group in groups) == entry["matches"],
        groups=groups,
        values=values,
        distinct=entry.get("distinct_values", 0),
    )


def _pairs(rows: Sequence[Sequence[Any]]) -> list[tuple[int, str]]:
    return [(number, text) for number, text in rows]
