"""Take a log line apart: the message without time, level and origin, and its most telling piece."""

from __future__ import annotations

import re

_UP_TO_LEVEL = re.compile(r"^.{0,110}?\b(TRACE|DEBUG|INFO|WARN(ING)?|ERROR|FATAL)\b[\s:]*")
_SYSLOG = re.compile(r"^[A-Z][a-z]{2} [ \d]\d [\d:]{8} \S+ [\w-]+(\[\d+\])?: ")
_ORIGIN = re.compile(r"^(\[.{0,120}?\] - |(\[[^\]]*\] |[\w.$]+: ?|\w+(\.[\w$]+)+:? )*)(- )?")


def message_of(text: str) -> str:
    """What a line says, without its time, level and origin in front."""
    return _ORIGIN.sub("", _SYSLOG.sub("", _UP_TO_LEVEL.sub("", text))).strip() or text.strip()


def phrase_of(text: str) -> str:
    """The longest stretch of a line's message without digits: what its like have in common."""
    pieces = re.split(r"[\d\[\]{}()=|\"]+", message_of(text))
    return max((piece.strip(" -:,.;/_") for piece in pieces), key=len, default="")[:60].strip()
