"""Read the time stamp of a log line.

Times are compared within one file only, so time zones are ignored.
"""

from __future__ import annotations

import re
from datetime import datetime

_CLOCK = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
_FORMATS = (
    # 2015-10-18 18:01:47,978   2017-05-16T00:00:00.008Z
    re.compile(rf"(?P<year>\d{{4}})-(?P<month>\d\d)-(?P<day>\d\d)[ T]{_CLOCK}"),
    # Dec 10 06:55:46   (syslog: no year)
    re.compile(rf"\b(?P<month>[A-Z][a-z]{{2}}) (?P<day>[ \d]\d) {_CLOCK}"),
    # 081109 203615   (Hadoop's short form: year, month, day)
    re.compile(
        r"^(?P<year>\d\d)(?P<month>\d\d)(?P<day>\d\d) "
        r"(?P<hour>\d\d)(?P<minute>\d\d)(?P<second>\d\d)\b"
    ),
    # 10/Oct/2025:13:55:36   (web servers)
    re.compile(rf"\b(?P<day>\d\d)/(?P<month>[A-Z][a-z]{{2}})/(?P<year>\d{{4}}):{_CLOCK}"),
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_NEAR_THE_START = 120
_NO_YEAR = 2000  # a leap year, so that Feb 29 exists


class Clock:
    """Reads the times of one file in the order of its lines.

    The order matters where a format has no year: a step back by many months is a new year.
    """

    def __init__(self) -> None:
        self._format = _FORMATS[0]
        self._year = _NO_YEAR
        self._month = 0
        self.has_year = True

    def read(self, line: str) -> datetime | None:
        """The line's time in whole seconds, or None if it has none that makes sense."""
        for form in (self._format, *_FORMATS):
            if found := form.search(line, 0, _NEAR_THE_START):
                self._format = form  # the next line most likely has the same
                try:
                    return self._time(found.groupdict())
                except ValueError:
                    return None  # a 13th month, say: numbers that only look like a time
        return None

    def _time(self, parts: dict[str, str]) -> datetime:
        month = _MONTHS.index(parts["month"]) + 1 if parts["month"].isalpha() else 0
        month = month or int(parts["month"])
        year = int(parts.get("year") or self._year_of(month))
        day, hour, minute, second = (int(parts[k]) for k in ("day", "hour", "minute", "second"))
        # Naive on purpose: logs rarely name their zone, and times of one file share it.
        return datetime(2000 + year if year < 100 else year, month, day, hour, minute, second)  # noqa: DTZ001

    def _year_of(self, month: int) -> int:
        self.has_year = False
        if month < self._month - 6:
            self._year += 1
        self._month = month
        return self._year

    def show(self, moment: datetime | None) -> str | None:
        """A time as text, without the year if the file has none."""
        if moment is None:
            return None
        return f"{moment:%Y-%m-%d %H:%M:%S}" if self.has_year else f"{moment:%b %d %H:%M:%S}"
