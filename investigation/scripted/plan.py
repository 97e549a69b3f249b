"""What the script looks at next: four rounds, each of independent calls.

1. list the files;
2. survey all of them: trouble in general, each word of the question, the topic of the question;
3. focus on the files that fit: their trouble, how it spreads over time, evidence to the contrary,
   and what was changed;
4. look closely: the lines around the first trouble, around its peak, around causes and changes,
   and who or what is affected most.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from investigation.scripted import analysis
from investigation.scripted.evidence import Evidence
from investigation.scripted.signs import CHANGES, TROUBLE
from investigation.scripted.topics import words_of

_AT_ONCE = 8


class Ask(NamedTuple):
    """A tool call and its purpose, by which the evidence remembers its result."""

    purpose: str
    tool: str
    arguments: dict[str, Any]


def next_calls(evidence: Evidence) -> list[Ask]:
    """The calls of the next round; none when it is time to report."""
    rounds = (_list, _survey, _focus, _look_closely)
    if evidence.must_report or evidence.rounds >= len(rounds):
        return []
    if evidence.rounds > 0 and not evidence.files:
        return []  # nothing to look at
    return rounds[evidence.rounds](evidence)[:_AT_ONCE]


def _list(_: Evidence) -> list[Ask]:
    return [Ask("files", "list_files", {})]


def _survey(evidence: Evidence) -> list[Ask]:
    calls = [Ask("survey", "search", {"pattern": TROUBLE, "ignore_case": False, "shapes": 3})]
    if lines := analysis.topic(evidence).lines:
        calls.append(Ask("topic", "search", {"pattern": lines, "shapes": 0}))
    return calls + [
        Ask(f"word:{word}", "search", {"pattern": word, "shapes": 0})
        for word in words_of(evidence.question)
    ]


def _focus(evidence: Evidence) -> list[Ask]:
    best, *others = [file.name for file in analysis.chosen_files(evidence)]
    topic = analysis.topic(evidence)
    trouble = {"pattern": TROUBLE, "ignore_case": False}
    asked = {"pattern": analysis.asked_for(evidence)}
    over_time = asked if asked["pattern"] else trouble
    calls = [
        Ask("trouble", "search", trouble | {"file": best, "shapes": 20}),
        Ask("histogram", "histogram", over_time | {"file": best}),
        Ask("success", "search", {"file": best, "pattern": topic.success, "shapes": 3}),
        Ask("change", "search", {"pattern": CHANGES, "shapes": 3}),
    ]
    if asked["pattern"]:
        calls.append(Ask("asked", "search", asked | {"file": best, "shapes": 8}))
    if topic.lines:
        calls.append(
            Ask("topic-lines", "search", {"file": best, "pattern": topic.lines, "shapes": 8})
        )
    if topic.outcome:
        calls.append(
            Ask("outcome", "search", {"file": best, "pattern": topic.outcome, "shapes": 3})
        )
    return calls + [
        Ask("trouble", "search", trouble | {"file": other, "shapes": 10}) for other in others
    ]


def _look_closely(evidence: Evidence) -> list[Ask]:
    main = analysis.main_trouble(evidence)
    if main is None:
        return []
    calls = [
        Ask("onset", "read", {"file": main.file, "line": main.first.line, "before": 8, "after": 6})
    ]
    if not main.exact:
        lines = {"file": main.file, "pattern": analysis.selector(evidence, main)}
        calls.append(Ask("count", "search", lines | {"shapes": 0}))
    if found := analysis.burst(evidence, main.file):
        calls.append(
            Ask("peak", "read", {"file": main.file, "line": found[1].line, "before": 2, "after": 6})
        )
    for change in analysis.changes(evidence)[:1]:
        calls.append(
            Ask(
                "change",
                "read",
                {"file": change.file, "line": change.line, "before": 3, "after": 4},
            )
        )
    for cause in analysis.causes(evidence)[:2]:
        if cause.first != main.first:
            where = {"file": cause.file, "line": cause.first.line, "before": 3, "after": 3}
            calls.append(Ask("cause", "read", where))
    return calls + _count_entities(evidence, main) + _check_successes(evidence, main)


def _count_entities(evidence: Evidence, main: analysis.Trouble) -> list[Ask]:
    """Who or what is in the lines of the main trouble, counted."""
    return [
        Ask(
            f"entity:{name}",
            "search",
            {
                "file": main.file,
                "pattern": f"{analysis.selector(evidence, main)}.*?{entity}",
                "shapes": 0,
            },
        )
        for name, entity in analysis.entities(evidence)
        if any(re.search(entity, group.text, re.IGNORECASE) for group in main.groups)
    ][:2]


def _check_successes(evidence: Evidence, main: analysis.Trouble) -> list[Ask]:
    """Did those who succeeded also fail? (A login that works after a hundred that do not.)"""
    hits = evidence.hits("success", main.file)
    return [
        Ask(
            f"also-failed:{value}",
            "search",
            {
                "file": main.file,
                "pattern": f"{analysis.selector(evidence, main)}.*({re.escape(value)})\\b",
                "shapes": 1,
            },
        )
        for value, _ in (hits.values[:2] if hits else ())
    ]
