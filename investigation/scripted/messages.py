"""Take a log line apart: the message without time, level and origin, and its most telling piece."""

from __future__ import annotations

import re

_NAME = 80
_UP_TO_LEVEL = re.compile(r"^.{0,110}?\b(TRACE|DEBUG|INFO|WARN(ING)?|ERROR|FATAL)\b[\s:]*")
_SYSLOG = re.compile(r"^[A-Z][a-z]{2} [ \d]\d [\d:]{8} \S+ [\w-]+(\[\d+\])?: ")
_ORIGIN = re.compile(r"^(\[.{0,120}?\] - |(\[[^\]]*\] |[\w.$]+: ?|\w+(\.[\w$]+)+:? )*)(- )?")


_WEB = re.compile(r"^\S+ \S+ \S+ \[[^\]]+\] ")


def message_of(text: str) -> str:
    """What a line says, without its time, level and origin in front."""
    without_time = _UP_TO_LEVEL.sub("", _SYSLOG.sub("", _WEB.sub("", text)))
    return _ORIGIN.sub("", without_time).strip() or text.strip()


def shape_of(text: str) -> str:
    """A line's message with `#` for its numbers: a name for all lines like it."""
    shape = re.sub(r"\d+", "#", message_of(text))
    return shape if len(shape) <= _NAME else f"{shape[:_NAME].rstrip()}…"


def phrase_of(text: str) -> str:
    """The longest stretch of a line's message without digits: finds the lines like it again."""
    pieces = re.split(r"[\d\[\]{}()=|\"]+", message_of(text))
    return max((piece.strip(" -:,.;/_") for piece in pieces), key=len, default="")[:60].strip()
