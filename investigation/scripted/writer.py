"""Write the report: an answer that fits the kind of question, the findings, and what to do next.

The conclusion comes first, then what it rests on, one thought to a line. Cautious by rule: it says
what lines say, how many, and since when; it speaks of a reason only when a line gives one or a
change came shortly before; and it says so when the logs do not answer.
"""

from __future__ import annotations

import re
from typing import Any

from investigation.scripted import analysis
from investigation.scripted.analysis import Trouble
from investigation.scripted.evidence import Evidence
from investigation.scripted.findings import (
    all_findings,
    also_failed,
    entities,
    other_troubles,
    spread,
    stands_out,
)
from investigation.scripted.topics import words_of
from investigation.scripted.wording import (
    capital,
    duration,
    how_many,
    lines,
    meaning,
    place,
    quoted,
    said,
    span,
)

_YES_NO = frozenset(("is", "are", "was", "were", "did", "does", "do", "has", "have", "can"))
_RIGHT_FOLDER = "Check that this is the right folder and that it covers the right time."
_ABOUT_CHANGES = r"(?i)\bchang|\bdeploy|\bconfig|\breleased?\b"
_WHICH = frozenset(("which", "who", "whose", "where"))


def write_report(evidence: Evidence) -> dict[str, Any]:
    """The arguments of the tool `report`."""
    main = analysis.main_trouble(evidence)
    if main is None:
        return _nothing_found(evidence)
    thoughts = [*_answer(evidence, main), _left_out(evidence)]
    return {
        "answer": "\n".join(filter(None, thoughts))[:4_000],
        "confidence": _confidence(evidence, main),
        "findings": all_findings(evidence, main),
        "next_steps": _next_steps(evidence, main),
    }


def _answer(evidence: Evidence, main: Trouble) -> list[str]:
    """The thoughts of the answer, in order."""
    first_word = re.sub(r"\W.*", "", evidence.question.strip().lower())
    of_interest = first_word in _WHICH or analysis.topic(evidence).name != "anything"
    counted = [
        spread(name, hits) for name, hits in entities(evidence) if of_interest or stands_out(hits)
    ]
    if unknown := analysis.unmentioned(evidence):
        named = " or ".join(quoted(word) for word in unknown)
        return [
            f"The logs do not answer this: no line or file mentions {named}.",
            f"What trouble there is: {_what_happened(main)}",
            _elsewhere(evidence),
        ]
    if evidence.searches.get("asked"):
        return [_what_happened(main), _how_long(evidence, main), *counted[:1]]
    if first_word in ("what", "which") and re.search(_ABOUT_CHANGES, evidence.question):
        return [_all_changes(evidence), _conclusion(evidence, main), _what_happened(main)]
    if first_word in _WHICH:
        return [*counted, _what_happened(main), _presumed(evidence, main)]
    if first_word not in _YES_NO:
        seen, why = _what_happened(main), _conclusion(evidence, main)
        return [
            *((why, _presumed(evidence, main), seen) if first_word == "why" else (seen, why)),
            *counted[:1],
            _what_followed(evidence, main),
            _how_long(evidence, main),
            _elsewhere(evidence),
        ]
    if analysis.topic(evidence).name == "intrusion":
        return [_anyone_in(evidence, main), _what_happened(main), *counted]
    return _whether(evidence, main)


def _conclusion(evidence: Evidence, main: Trouble) -> str:
    """The reason in one or two sentences, as far as the logs give one."""
    found = analysis.causes(evidence)[:2]
    reasons = [
        f"{cause.sign.meaning} ({said(cause.first.text)}, {how_many(cause)} from "
        f"{place(cause.first)} on)"
        for cause in found
        if cause.sign
    ]
    near = analysis.changes(evidence)
    because = f"because {'; also '.join(reasons)}" if reasons else ""
    changed = f"a change at {near[0].time}: {said(near[0].text)} ({place(near[0])})" if near else ""
    if because and changed:
        return f"Most likely {because}. Shortly before, there was {changed}; look there first."
    if because:
        return f"{'Probably' if found[0].count * 2 > main.count else 'Possibly'} {because}."
    if changed:
        return f"Possibly because of {changed}, which came shortly before."
    return "The logs show what happened, but no line gives a reason: look for it outside them."


def _all_changes(evidence: Evidence) -> str:
    """The changes of the same time, in order; for whoever asks for just them."""
    found = sorted(analysis.same_time_changes(evidence), key=lambda group: group.time)
    if not found:
        return "No line speaks of a change."
    shown = "; ".join(f"{one.time} {said(one.text)} ({place(one)})" for one in found[:6])
    return f"{lines(len(found))} of different kinds speak of changes: {shown}."


def _what_happened(main: Trouble) -> str:
    return (
        f"{main.file} has {how_many(main)} of {quoted(main.name)}, such as "
        f"{said(main.first.text)}, {span(main)}.{meaning(main)}"
    )


def _presumed(evidence: Evidence, main: Trouble) -> str:
    """Whether the logs say what the question takes for granted."""
    topic = analysis.topic(evidence)
    if not topic.presumed or evidence.hits("outcome", main.file):
        return ""
    return f"No line in {main.file} says in so many words that {topic.presumed}."


def _what_followed(evidence: Evidence, main: Trouble) -> str:
    """Other trouble of the same time, in one sentence."""
    followed = [
        f"{other.name} ({how_many(other)} in {other.file})"
        for other in other_troubles(evidence, main)
        if not analysis.earlier(other, main) and (other.sign is None or other.sign.role != "weak")
    ]
    return f"At the same time there was: {', '.join(followed[:3])}." if followed else ""


def _how_long(evidence: Evidence, main: Trouble) -> str:
    """When it was worst, and whether it ended."""
    parts = []
    if found := analysis.burst(evidence, main.file):
        _, peak, step = found
        parts.append(f"It is worst in the {duration(step)} from {peak.time} ({lines(peak.count)}).")
    file = next(one for one in analysis.chosen_files(evidence) if one.name == main.file)
    success = evidence.hits("success", main.file)
    if success and success.groups[0].line > main.last_line:
        end = success.groups[0]
        parts.append(f"It ended: {said(end.text)} at {end.time} ({place(end)}).")
    elif file.lines - main.last_line <= file.lines // 100:
        parts.append("It was still going on when the log ends.")
    return " ".join(parts)


def _elsewhere(evidence: Evidence) -> str:
    """For a question that names nothing in the logs: which other files hold trouble as well."""
    chosen = analysis.chosen_files(evidence)
    others = [
        f"{file.name} ({file.problems:,} warnings and errors)"
        for file in evidence.files
        if file.problems and file not in chosen
    ]
    named = words_of(evidence.question) and not analysis.unmentioned(evidence)
    if named or not others:
        return ""
    return f"Other files hold trouble as well, so ask about one: {', '.join(others)}."


def _anyone_in(evidence: Evidence, main: Trouble) -> str:
    """After attempts to log in: did one succeed?"""
    success = evidence.hits("success", main.file)
    if success is None:
        return "Somebody is trying, but no line shows that anyone got in."
    first = success.groups[0]
    return " ".join(
        [
            f"Somebody is trying, and one login succeeded: {said(first.text)} ({place(first)})."
            if success.matches == 1
            else f"Somebody is trying, and {success.matches:,} logins succeeded, the first: "
            f"{said(first.text)} ({place(first)}).",
            *also_failed(evidence, success),
            "Whether it was legitimate, the logs do not say.",
        ]
    )


def _whether(evidence: Evidence, main: Trouble) -> list[str]:
    success = evidence.hits("success", main.file)
    worked = ""
    if success is not None:
        worked = f"{lines(success.matches)} report success ({said(success.groups[0].text)})."
    if is_serious(main) or evidence.hits("outcome", main.file):
        return [
            f"Yes, as far as the logs go: {_what_happened(main)}",
            _conclusion(evidence, main),
            _presumed(evidence, main),
            _how_long(evidence, main),
            f"On the other hand, {worked}" if worked else "",
        ]
    return [
        f"The logs do not show it. {_presumed(evidence, main)}".strip(),
        capital(worked),
        f"What there is: {_what_happened(main)}",
    ]


def is_serious(main: Trouble) -> bool:
    """True when the trouble is more than a warning about something that is missing."""
    if any(re.search(r"\b(ERROR|FATAL|SEVERE|CRIT)", group.text) for group in main.groups):
        return True
    if main.sign is None:
        return False
    return main.sign.role == "cause" or (
        main.sign.role == "symptom" and main.sign.name != "missing thing"
    )


def _confidence(evidence: Evidence, main: Trouble) -> str:
    """High with a reason and a change that agree, low without either."""
    found, near = analysis.causes(evidence), analysis.changes(evidence)
    if analysis.unmentioned(evidence):
        return "low"
    if found and near:
        return "high"
    if found or near or entities(evidence) or evidence.hits("success", main.file):
        return "medium"
    return "low"


def _next_steps(evidence: Evidence, main: Trouble) -> list[str]:
    if analysis.unmentioned(evidence):
        return [_RIGHT_FOLDER]
    steps = [
        f"Check the change at {change.time} ({place(change)}); undo it if in doubt."
        for change in analysis.changes(evidence)[:1]
    ]
    advised = [*analysis.causes(evidence)[:2], main]
    steps += [one.sign.advice for one in advised if one.sign and one.sign.advice]
    return list(dict.fromkeys(steps))[:5]


def _left_out(evidence: Evidence) -> str:
    """Which files were not read, or not completely: the answer does not cover them."""
    named = [f"{file} ({why})" for file, why in sorted(evidence.left_out.items())]
    more = f" and {len(named) - 5} more" if len(named) > 5 else ""
    return f"Not covered: {', '.join(named[:5])}{more}." if named else ""


def _nothing_found(evidence: Evidence) -> dict[str, Any]:
    looked = [f"{file.name} ({lines(file.lines)})" for file in analysis.chosen_files(evidence)]
    where = f" in {', '.join(looked)}" if looked else ""
    trouble = f" The tools said: {evidence.errors[0]}" if evidence.errors else ""
    return {
        "answer": "The logs do not answer this: nothing that looks like trouble was found"
        f"{where}.{trouble} {_left_out(evidence)}".rstrip(),
        "confidence": "low",
        "findings": [],
        "next_steps": [_RIGHT_FOLDER],
    }
