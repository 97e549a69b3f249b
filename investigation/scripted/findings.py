"""The findings of the report: one aspect each, with lines that show it."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from investigation.scripted import analysis
from investigation.scripted.analysis import Trouble
from investigation.scripted.evidence import Evidence, Group, Hits
from investigation.scripted.wording import (
    capital,
    duration,
    how_many,
    lines,
    meaning,
    most,
    place,
    plural,
    said,
    span,
)

Finding = dict[str, Any]
MOST_FINDINGS = 9


def all_findings(evidence: Evidence, main: Trouble) -> list[Finding]:
    """Everything worth telling, the most important first."""
    found = [
        _the_trouble(main),
        *_how_it_began(evidence, main),
        *_changes(evidence),
        *_reasons(evidence, main),
        *_who_is_affected(evidence, main),
        *_when_it_is_worst(evidence, main),
        *_the_contrary(evidence, main),
        *_outcome(evidence, main),
        *_other_trouble(evidence, main),
    ]
    return [finding for finding in found if finding["citations"]][:MOST_FINDINGS]


def claim(file: str, line: int, text: str) -> dict[str, Any]:
    """A citation: the beginning of a line that was seen."""
    return {"file": file, "line": line, "quote": text[:150].strip()}


def cite(group: Group) -> dict[str, Any]:
    return claim(group.file, group.line, group.text)


def _finding(title: str, detail: str, citations: list[dict[str, Any]]) -> Finding:
    return {"title": title[:300], "detail": detail[:3_000], "citations": citations[:8]}


def _the_trouble(main: Trouble) -> Finding:
    kinds = Counter[str]()
    for group in main.groups:
        kinds[said(group.text)] += group.count
    mostly = "; ".join(f"{text} in {lines(count)}" for text, count in kinds.most_common(4))
    return _finding(
        f"{capital(main.name)}: {how_many(main)} in {main.file}",
        f"{capital(span(main))}.{meaning(main)} Mostly: {mostly}.",
        [cite(group) for group in sorted(main.groups[:3], key=lambda group: group.line)],
    )


def _how_it_began(evidence: Evidence, main: Trouble) -> list[Finding]:
    """The lines just before and after the first one, as far as they say something new."""
    around = [
        (number, evidence.lines[main.file, number])
        for number in evidence.windows.get("onset", ())
        if abs(number - main.first.line) <= 3
    ]
    before = [said(text) for number, text in around if number < main.first.line]
    after = [said(text) for number, text in around if number > main.first.line]
    if not (before or after):
        return []
    story = f"Before: {', '.join(before[-2:])}. " if before else "It is the first line. "
    return [
        _finding(
            "How it began",
            f"{story}Then: {said(main.first.text)}. After: {', '.join(after[:3])}.",
            [claim(main.file, number, text) for number, text in around][:6],
        )
    ]


def _changes(evidence: Evidence) -> list[Finding]:
    return [
        _finding(
            f"A change shortly before: {said(change.text)}",
            f"At {change.time}; the trouble began at {analysis.onset(evidence)}. That it came "
            "first does not prove that it is to blame.",
            [cite(change)],
        )
        for change in analysis.changes(evidence)[:2]
    ]


def _reasons(evidence: Evidence, main: Trouble) -> list[Finding]:
    return [
        _finding(
            f"A possible reason: {cause.name}, {how_many(cause)} in {cause.file}",
            f"{said(cause.first.text)}, {span(cause)}.{meaning(cause)}",
            [cite(cause.first)],
        )
        for cause in analysis.causes(evidence)[:3]
        if cause.first != main.first
    ]


def entities(evidence: Evidence) -> list[tuple[str, Hits]]:
    """What was counted in the lines of the main trouble, by name."""
    return [
        (purpose.partition(":")[2], found[0])
        for purpose, found in evidence.searches.items()
        if purpose.startswith("entity:") and found and found[0].values
    ]


def spread(name: str, hits: Hits) -> str:
    """How the values of an entity are spread, in one sentence."""
    if hits.distinct == 1:
        return f"All these lines name the same {name}: {hits.values[0][0]}."
    named = f"{plural(name, hits.distinct)} are named"
    if hits.values[0][1] == 1:
        some = ", ".join(value for value, _ in hits.values[:4])
        return f"{named}, each once, so no single one stands out: {some} and so on."
    if not stands_out(hits):
        return f"{named}, most often {most(hits)}; none stands out."
    share = hits.values[0][1] / hits.matches
    return f"{named}, most often {most(hits)}: the first in {share:.0%} of the lines."


def stands_out(hits: Hits) -> bool:
    """True when there are few values, or one of them has a good part of the lines."""
    return hits.distinct <= 3 or hits.values[0][1] / hits.matches > 0.2


def _who_is_affected(evidence: Evidence, main: Trouble) -> list[Finding]:
    return [
        _finding(
            f"Counted by {name}: {plural(name, hits.distinct)} in {lines(hits.matches)}",
            f"{spread(name, hits)} The first by number: {most(hits, 8)}.",
            _mentioning(evidence, main, [value for value, _ in hits.values[:2]]),
        )
        for name, hits in entities(evidence)
    ]


def _mentioning(evidence: Evidence, main: Trouble, values: list[str]) -> list[dict[str, Any]]:
    """Lines of the trouble that were seen and hold one of the values."""
    cited: dict[int, dict[str, Any]] = {}
    for value in values:
        for (file, number), text in evidence.lines.items():
            about = file == main.file and re.search(main.pattern, text, re.IGNORECASE)
            if about and re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text):
                cited[number] = claim(file, number, text)
                break
    return list(cited.values()) or [cite(main.first)]


def _when_it_is_worst(evidence: Evidence, main: Trouble) -> list[Finding]:
    found = analysis.burst(evidence, main.file)
    if found is None:
        return []
    start, peak, step = found
    rise = "" if start == peak else f" A first rise is at {start.time} (line {start.line})."
    return [
        _finding(
            f"It comes in bursts; the largest at {peak.time}",
            f"{lines(peak.count)} of trouble in the {duration(step)} from {peak.time}.{rise}",
            [
                claim(main.file, bucket.line, evidence.lines[main.file, bucket.line])
                for bucket in dict.fromkeys((start, peak))
                if (main.file, bucket.line) in evidence.lines
            ],
        )
    ]


def _the_contrary(evidence: Evidence, main: Trouble) -> list[Finding]:
    hits = evidence.hits("success", main.file)
    if hits is None:
        return []
    shown = "; ".join(f"{said(group.text)} ({lines(group.count)})" for group in hits.groups)
    ended = hits.groups[0].line > main.last_line
    return [
        _finding(
            f"Afterwards: {said(hits.groups[0].text)}"
            if ended
            else f"To the contrary: {lines(hits.matches)} of success in {main.file}",
            " ".join([f"{shown}.", *also_failed(evidence, hits)]),
            [cite(group) for group in hits.groups],
        )
    ]


def also_failed(evidence: Evidence, hits: Hits) -> list[str]:
    """Of those for whom it worked: did it also fail for them? One sentence each."""
    found = []
    for value, _ in hits.values[:2]:
        if (failures := evidence.searches.get(f"also-failed:{value}")) is not None:
            count = sum(one.matches for one in failures)
            found.append(
                f"{lines(count)} of failure name {value} as well: look at this one first."
                if count
                else f"No line of failure names {value}."
            )
    return found


def _outcome(evidence: Evidence, main: Trouble) -> list[Finding]:
    """Lines that state what the question presumes, if there are any."""
    hits = evidence.hits("outcome", main.file)
    if hits is None:
        return []
    return [
        _finding(
            f"It is said in so many words: {lines(hits.matches)}",
            "; ".join(f"{said(group.text)} ({place(group)})" for group in hits.groups) + ".",
            [cite(group) for group in hits.groups],
        )
    ]


def other_troubles(evidence: Evidence, main: Trouble) -> list[Trouble]:
    """Neither the main trouble nor a reason; what began before the main trouble comes last."""
    told = {main.first, *(cause.first for cause in analysis.causes(evidence)[:3])}
    others = [other for other in analysis.troubles(evidence) if other.first not in told]
    return sorted(others, key=lambda other: (analysis.earlier(other, main), _is_weak(other)))


def _other_trouble(evidence: Evidence, main: Trouble) -> list[Finding]:
    return [
        _finding(
            f"{_kind_of(other, main)}: {other.name}, {how_many(other)} in {other.file}",
            f"{said(other.first.text)}, {span(other)}.{meaning(other)}",
            [cite(other.first)],
        )
        for other in other_troubles(evidence, main)[:5]
    ]


def _is_weak(trouble: Trouble) -> bool:
    return trouble.sign is not None and trouble.sign.role == "weak"


def _kind_of(other: Trouble, main: Trouble) -> str:
    if _is_weak(other):
        return "Alarming words, weak evidence"
    if analysis.earlier(other, main):
        return "Probably another matter, it began earlier"
    return "Also seen"
