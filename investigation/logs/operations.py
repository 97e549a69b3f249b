"""The tools: plain functions from a corpus and arguments to an answer that becomes JSON.

The first two parameters are the corpus and the scan that reads it; the others are what the model
gives. Arguments that cannot work raise `ToolError` with a message for the model.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from investigation.logs.files import Corpus, LogFile, Scan, ToolError
from investigation.logs.shapes import Shapes
from investigation.logs.times import Clock

SAMPLE = 300
"""Characters of a line in an answer."""
PATTERN = 500
"""Characters of a pattern."""
WINDOW = 40
"""Lines before or after the one that is read."""
SHAPES = 20
VALUES = 50_000
"""Different values of a group that are counted; later ones are not."""
CLAIMS = 100
_PROBLEM = re.compile(r"\b(WARN(ING)?|ERROR|FATAL|SEVERE|CRIT(ICAL)?|EMERG|PANIC)\b")
_BUCKETS = (1, 5, 10, 30, 60, 300, 600, 1_800, 3_600, 21_600, 86_400, 604_800)
_MAX_BUCKETS = 40

Answer = dict[str, Any]


def list_files(corpus: Corpus, scan: Scan) -> Answer:
    """Name, size, lines, time range and number of warnings and errors of each file."""
    files: list[Answer] = []
    for file in corpus.files:
        clock, first, last, lines, problems = Clock(), None, None, 0, 0
        for lines, text in scan.lines(file):  # noqa: B007  (the number of the last line)
            problems += _PROBLEM.search(text, 0, 200) is not None
            if moment := clock.read(text):
                first, last = min(first or moment, moment), max(last or moment, moment)
        files.append(
            {
                "file": file.name,
                "bytes": file.size,
                "lines": lines,
                "warnings_and_errors": problems,
                "first_time": clock.show(first),
                "last_time": clock.show(last),
            }
        )
    return {"files": files, "skipped": _skipped(corpus.skipped)}


def search(
    corpus: Corpus,
    scan: Scan,
    pattern: str,
    file: str = "",
    ignore_case: bool = True,
    shapes: int = 4,
) -> Answer:
    """Count the lines that match, per file, grouped by shape; count what group 1 captures."""
    if not 0 <= shapes <= SHAPES:
        raise ToolError(f"shapes is between 0 and {SHAPES}")
    regex = _compile(pattern, ignore_case)
    files = [corpus.pick(file)] if file else corpus.files
    found = [hit for one in files if (hit := _search_file(one, scan, regex, shapes))]
    return {"pattern": pattern, "files": found, "files_without_match": len(files) - len(found)}


def _search_file(file: LogFile, scan: Scan, regex: re.Pattern[str], limit: int) -> Answer:
    clock, groups, values = Clock(), Shapes(), Counter[str]()
    count = number = 0
    for number, text in scan.lines(file):
        if match := regex.search(text):
            count += 1
            groups.add(number, text, clock.read(text))
            value = (match[1] or "")[:100] if regex.groups else ""
            if value and (value in values or len(values) < VALUES):
                values[value] += 1
    if not count:
        return {}
    answer: Answer = {
        "file": file.name,
        "matches": count,
        "lines": number,
        "distinct_shapes": len(groups),
        "shapes": [
            {
                "count": shape.count,
                "first_line": shape.line,
                "last_line": shape.last_line,
                "first_time": clock.show(shape.earliest),
                "last_time": clock.show(shape.latest),
                "example": shape.text[:SAMPLE],
            }
            for shape in groups.most_common(limit)
        ],
    }
    if regex.groups:
        answer["distinct_values"] = len(values)
        answer["values"] = [list(pair) for pair in values.most_common(15)]
    return answer


def read(
    corpus: Corpus, scan: Scan, file: str, line: int, before: int = 10, after: int = 10
) -> Answer:
    """The lines around one line."""
    if line < 1 or not 0 <= before <= WINDOW or not 0 <= after <= WINDOW:
        raise ToolError(f"line counts from 1; before and after are between 0 and {WINDOW}")
    width = min(2 * SAMPLE, 7_000 // (before + after + 1))
    window: list[list[Any]] = []
    number = 0
    for number, text in scan.lines(corpus.pick(file)):
        if number > line + after:
            break
        if number >= line - before:
            window.append([number, text[:width]])
    if not window:
        raise ToolError(f"{file!r} has no line {line}; {number} lines were read")
    return {"file": file, "columns": ["line", "text"], "lines": window}


def histogram(
    corpus: Corpus, scan: Scan, file: str, pattern: str = "", ignore_case: bool = True
) -> Answer:
    """How often a pattern matches over time. The step is chosen so that the answer is short."""
    regex = _compile(pattern or ".", ignore_case)
    clock = Clock()
    seconds: Counter[datetime] = Counter()
    first_lines: dict[datetime, int] = {}
    matches = 0
    for number, text in scan.lines(corpus.pick(file)):
        if regex.search(text):
            matches += 1
            if moment := clock.read(text):
                seconds[moment] += 1
                first_lines.setdefault(moment, number)
    answer: Answer = {"file": file, "pattern": pattern, "matches": matches}
    if not seconds:
        return answer | {"buckets": [], "note": "no matching line has a time stamp"}
    step = _step(seconds)
    counts: Counter[datetime] = Counter()
    starts: dict[datetime, int] = {}
    for moment, count in sorted(seconds.items()):
        bucket = _floor(moment, step)
        counts[bucket] += count
        starts[bucket] = min(starts.get(bucket, first_lines[moment]), first_lines[moment])
    return answer | {
        "first_time": clock.show(min(seconds)),
        "last_time": clock.show(max(seconds)),
        "seconds_per_bucket": step,
        "columns": ["start", "count", "first_line"],
        "buckets": [
            [clock.show(bucket), counts[bucket], starts[bucket]] for bucket in sorted(counts)
        ],
    }


def _step(seconds: Iterable[datetime]) -> int:
    """The smallest step that leaves few enough buckets; empty ones are not shown, nor counted."""
    return next(
        (step for step in _BUCKETS if len({_floor(one, step) for one in seconds}) <= _MAX_BUCKETS),
        30 * 86_400,
    )


def _floor(moment: datetime, step: int) -> datetime:
    epoch = datetime(2000, 1, 1)  # noqa: DTZ001  (as naive as the times themselves)
    return epoch + timedelta(seconds=(moment - epoch).total_seconds() // step * step)


def quote(corpus: Corpus, scan: Scan, claims: list[dict[str, Any]]) -> Answer:
    """Compare claimed quotes with the lines that they are said to come from."""
    if len(claims) > CLAIMS or not all(_is_claim(claim) for claim in claims):
        raise ToolError(f"claims: at most {CLAIMS} objects with file, line and quote")
    names = {file.name: file for file in corpus.files}
    wanted: dict[str, list[int]] = {}
    for claim in claims:
        wanted.setdefault(claim["file"], []).append(claim["line"])
    texts: dict[tuple[str, int], str] = {}
    for name, numbers in wanted.items():
        if name in names:
            for number, text in scan.lines(names[name]):
                if number in numbers:
                    texts[name, number] = text
                if number >= max(numbers):
                    break
    return {"quotes": [_compare(claim, texts) for claim in claims]}


def _is_claim(claim: Any) -> bool:
    return isinstance(claim, dict) and all(
        isinstance(claim.get(key), kind)
        for key, kind in (("file", str), ("line", int), ("quote", str))
    )


def _compare(claim: dict[str, Any], texts: dict[tuple[str, int], str]) -> Answer:
    text = texts.get((claim["file"], claim["line"]))
    place = {"file": claim["file"], "line": claim["line"]}
    if text is None:
        return place | {"found": False, "text": "no such line"}
    wanted, actual = (" ".join(part.split()) for part in (claim["quote"], text))
    at = actual.find(wanted)
    start = 0 if at < SAMPLE // 2 else at
    return place | {"found": at >= 0, "text": actual[start : start + SAMPLE]}


def _compile(pattern: str, ignore_case: bool) -> re.Pattern[str]:
    if not isinstance(pattern, str) or not 0 < len(pattern) <= PATTERN:
        raise ToolError(f"pattern must be text of 1 to {PATTERN} characters")
    try:
        return re.compile(pattern, re.IGNORECASE if ignore_case else 0)
    except (re.error, RecursionError, OverflowError) as error:
        raise ToolError(f"{pattern!r} is not a valid Python regular expression: {error}") from None


def _skipped(pairs: list[tuple[str, str]]) -> list[Answer]:
    return [{"file": name, "why": why} for name, why in pairs]


OPERATIONS: Mapping[str, Callable[..., Answer]] = {
    "list_files": list_files,
    "search": search,
    "read": read,
    "histogram": histogram,
    "quote": quote,
}
