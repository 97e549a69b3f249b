"""Small phrases of the report: counts, times, places, and what a line says."""

from __future__ import annotations

from investigation.scripted.analysis import Trouble
from investigation.scripted.evidence import Group, Hits
from investigation.scripted.messages import message_of

_SHOWN = 160


def said(text: str) -> str:
    """What a line says, in quotation marks."""
    message = message_of(text)
    return f"“{message}”" if len(message) <= _SHOWN else f"“{message[:_SHOWN].rstrip()}…”"


def lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count:,} lines"


def how_many(trouble: Trouble) -> str:
    return lines(trouble.count) if trouble.exact else f"at least {lines(trouble.count)}"


def quoted(name: str) -> str:
    return name if name.startswith("“") else f"“{name}”"


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def place(group: Group) -> str:
    return f"{group.file}:{group.line}"


def span(trouble: Trouble) -> str:
    """When, and in which lines."""
    first, last = trouble.first.line, trouble.last_line
    if first == last:
        return f"at {trouble.first_time}, line {first}" if trouble.first_time else f"line {first}"
    times = f"between {trouble.first_time} and {trouble.last_time}, " if trouble.first_time else ""
    return f"{times}lines {first} to {last}"


def meaning(trouble: Trouble) -> str:
    """What it usually means, as a sentence of its own; empty if unknown."""
    return f" That means: {trouble.sign.meaning}." if trouble.sign else ""


def duration(seconds: int) -> str:
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")):
        if seconds >= size and seconds % size == 0:
            return unit if seconds == size else f"{seconds // size} {unit}s"
    return f"{seconds} seconds"


def most(hits: Hits, limit: int = 3) -> str:
    """The most frequent values with their counts."""
    return ", ".join(f"{value} ({count:,})" for value, count in hits.values[:limit])


def plural(name: str, count: int) -> str:
    ending = "es" if name.endswith("s") else "s"
    return f"1 {name}" if count == 1 else f"{count:,} {name}{ending}"
