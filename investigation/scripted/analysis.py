"""Make sense of the evidence: which file is meant, what went wrong in it, when, and why.

Plain arithmetic on counts and times, so that a reader can follow why the script concludes what it
concludes. Each function takes the evidence and gives None or an empty result when it has no basis.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from investigation.scripted.evidence import Bucket, Evidence, Group, LogFile
from investigation.scripted.messages import phrase_of, shape_of
from investigation.scripted.signs import Sign, sign_of
from investigation.scripted.topics import Topic, topic_of, words_of

RELATED_FILES = 4
CHANGE_WINDOW = timedelta(hours=2)
BACKGROUND = timedelta(minutes=15)
"""What began this much earlier than the trouble that was asked about is another matter."""


@dataclass(frozen=True)
class Trouble:
    """Groups of lines in one file that mean the same; `first` is the group that began first.

    `count` is a lower bound unless `exact`: a search shows only the most frequent shapes.
    """

    sign: Sign | None
    file: str
    count: int
    exact: bool
    first: Group
    last_line: int
    first_time: str
    last_time: str
    groups: tuple[Group, ...]

    @property
    def name(self) -> str:
        return self.sign.name if self.sign else f"“{shape_of(self.first.text)}”"

    @property
    def pattern(self) -> str:
        """A regular expression that finds these lines again."""
        return self.sign.pattern if self.sign else re.escape(phrase_of(self.first.text))


def topic(evidence: Evidence) -> Topic:
    return topic_of(evidence.question)


def word_weights(evidence: Evidence) -> dict[str, float]:
    """How much a word of the question tells: a word that few files contain tells more."""
    weights = {}
    for word in words_of(evidence.question):
        found_in = len(evidence.searches.get(f"word:{word}", ()))
        weights[word] = math.log(1 + len(evidence.files) / found_in) if found_in else 0.0
    return weights


def rank_files(evidence: Evidence) -> list[tuple[float, LogFile]]:
    """The files by how well they fit the question; the best first."""
    weights = word_weights(evidence)
    about = {hits.file: hits.matches for hits in evidence.searches.get("topic", ())}
    most_trouble = max((file.problems for file in evidence.files), default=0) or 1
    ranked = []
    for file in evidence.files:
        score = 0.2 * file.problems / most_trouble
        if about:
            score += about.get(file.name, 0) / max(about.values())
        for word, weight in weights.items():
            counts = {hits.file: hits.matches for hits in evidence.searches.get(f"word:{word}", ())}
            if counts:
                score += weight * math.sqrt(counts.get(file.name, 0) / max(counts.values()))
            if re.search(word, file.name, re.IGNORECASE):
                score += 2 + weight
        ranked.append((score, file))
    return sorted(ranked, key=lambda pair: (-pair[0], pair[1].name))


def chosen_files(evidence: Evidence) -> list[LogFile]:
    """The file that fits best, then the others that cover the same time and hold trouble."""
    ranked = rank_files(evidence)
    if not ranked:
        return []
    best = ranked[0][1]
    troubled = {hits.file for hits in evidence.searches.get("survey", ())}
    others = [
        file
        for score, file in ranked[1:]
        if file.overlaps(best) and (file.name in troubled or score > ranked[0][0] / 2)
    ]
    return [best, *others][:RELATED_FILES]


def troubles(evidence: Evidence) -> list[Trouble]:
    """What went wrong in the chosen files, the most relevant first."""
    chosen = {file.name for file in chosen_files(evidence)}
    groups: dict[tuple[str, int], Group] = {}
    for purpose in ("trouble", "topic-lines", "survey"):
        for hits in evidence.searches.get(purpose, ()):
            if hits.file in chosen:
                for group in hits.groups:
                    groups.setdefault((group.file, group.line), group)
    merged: dict[tuple[str, str], list[Group]] = {}
    for group in groups.values():
        sign = sign_of(group.text)
        if sign is None and not looks_bad(group.text):
            continue
        if sign is None or sign.role not in ("success", "change"):
            key = sign.name if sign else phrase_of(group.text)
            merged.setdefault((group.file, key), []).append(group)
    found = [
        _merge(file, members, exact=_all_shown(evidence, file))
        for (file, _), members in merged.items()
    ]
    return sorted(found, key=lambda trouble: (-relevance(evidence, trouble), trouble.first.line))


def looks_bad(text: str) -> bool:
    """True when a line that no sign explains at least calls itself trouble."""
    return bool(re.search(r"\b(WARN(ING)?|ERROR|FATAL|SEVERE|CRIT(ICAL)?)\b", text[:200]))


def _all_shown(evidence: Evidence, file: str) -> bool:
    hits = evidence.hits("trouble", file)
    return hits is not None and hits.complete


def _merge(file: str, groups: list[Group], *, exact: bool) -> Trouble:
    first = min(groups, key=lambda group: group.line)
    return Trouble(
        sign=sign_of(first.text),
        file=file,
        count=sum(group.count for group in groups),
        exact=exact,
        first=first,
        last_line=max(group.last_line for group in groups),
        first_time=min((group.time for group in groups if group.time), default=""),
        last_time=max(group.last_time for group in groups),
        groups=tuple(sorted(groups, key=lambda group: (-group.count, group.line))),
    )


_ROLE_WEIGHT = {"cause": 0.6, "symptom": 0.4, "weak": -1.0}


def relevance(evidence: Evidence, trouble: Trouble) -> float:
    """How much a trouble has to do with the question."""
    text = " ".join(group.text for group in trouble.groups)
    named = sum(
        weight
        for word, weight in word_weights(evidence).items()
        if re.search(word, text, re.IGNORECASE)
    )
    best = chosen_files(evidence)[0].name
    role = _ROLE_WEIGHT.get(trouble.sign.role, 0.0) if trouble.sign else 0.0
    severe = 0.5 if re.search(r"\b(ERROR|FATAL|SEVERE|CRIT)", text) else 0.0
    home = 1.0 if trouble.file == best else 0.0
    return named + role + severe + home + math.log10(trouble.count + 1)


def unmentioned(evidence: Evidence) -> list[str]:
    """The words of the question, if it is of no known kind and none stands in a line or name."""
    words = words_of(evidence.question)
    for pattern in words:
        if evidence.searches.get(f"word:{pattern}"):
            return []
        if any(re.search(pattern, file.name, re.IGNORECASE) for file in evidence.files):
            return []
    return list(words.values()) if topic(evidence).name == "anything" else []


def asked_for(evidence: Evidence) -> str:
    """For a question about when or how often: the lines that hold all its words; else nothing."""
    if not re.match(r"(?i)\W*(when|how (many|often))\b", evidence.question):
        return ""
    found = [word for word in words_of(evidence.question) if evidence.searches.get(f"word:{word}")]
    return "".join(f"(?=.*(?:{word}))" for word in found)


def main_trouble(evidence: Evidence) -> Trouble | None:
    """The trouble that was asked about, with its exact count once that is known."""
    main = _main_trouble(evidence)
    counted = evidence.hits("count", main.file) if main else None
    return replace(main, count=counted.matches, exact=True) if main and counted else main


def _main_trouble(evidence: Evidence) -> Trouble | None:
    for hits in evidence.searches.get("asked", ()):
        return _merge(hits.file, list(hits.groups), exact=hits.complete)
    asked = topic(evidence)  # for a strict one, only lines about it will do
    for trouble in troubles(evidence):
        texts = (group.text for group in trouble.groups)
        if not asked.strict or any(re.search(asked.lines, text, re.IGNORECASE) for text in texts):
            return trouble
    return None


def selector(evidence: Evidence, main: Trouble) -> str:
    """The beginning of a pattern that matches only the lines of the main trouble."""
    lookahead = asked_for(evidence) if evidence.searches.get("asked") else ""
    return f"^{lookahead or f'(?=.*(?:{main.pattern}))'}"


def entities(evidence: Evidence) -> tuple[tuple[str, str], ...]:
    """What is worth counting in the lines of the trouble: name and pattern with one group.

    Where the topic is open, also the things that the question names: `order` in `order 4711`.
    """
    asked = topic(evidence)
    if asked.name != "anything":
        return asked.entities
    named = tuple(
        (word, rf"\b{word}\w*[ =:#_-]+([\w.-]*\d\w*)")
        for word in words_of(evidence.question)
        if word.isalpha()
    )
    return (*named, *asked.entities)


# Time.


def moment(text: str) -> datetime | None:
    """A time as the tools write it; None for times without a year."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def burst(evidence: Evidence, file: str) -> tuple[Bucket, Bucket, int] | None:
    """Where the histogram of a file rises: the first high bucket, the highest, seconds a bucket.

    None when the matches are spread evenly: no bucket holds four times the median.
    """
    step, buckets = evidence.histograms.get(file, (0, []))
    if len(buckets) < 2:
        return None
    peak = max(buckets, key=lambda bucket: bucket.count)
    median = sorted(bucket.count for bucket in buckets)[(len(buckets) - 1) // 2]
    if peak.count < max(4, 4 * median):
        return None
    start = next(bucket for bucket in buckets if bucket.count * 4 >= peak.count)
    return start, peak, step


def onset(evidence: Evidence) -> str:
    """When the trouble that was asked about began."""
    main = main_trouble(evidence)
    return main.first_time if main else ""


def same_time_changes(evidence: Evidence) -> list[Group]:
    """All changes in files that cover the time of the file in question."""
    best = next(iter(chosen_files(evidence)), None)
    same_time = {file.name for file in evidence.files if best and file.overlaps(best)}
    return [
        group
        for hits in evidence.searches.get("change", ())
        if hits.file in same_time
        for group in hits.groups
    ]


def changes(evidence: Evidence) -> list[Group]:
    """Changes in any file of the same time, up to two hours before the onset, closest first."""
    began = moment(onset(evidence))
    near: list[tuple[timedelta, Group]] = []
    for group in same_time_changes(evidence):
        at = moment(group.time)
        if began and at and timedelta() <= began - at <= CHANGE_WINDOW:
            near.append((began - at, group))
    return [group for _, group in sorted(near, key=lambda pair: (pair[0], pair[1].line))]


def earlier(other: Trouble, main: Trouble) -> bool:
    """True when `other` began well before `main`, so that it does not follow from it."""
    began, main_began = moment(other.first_time), moment(main.first_time)
    return bool(began and main_began and main_began - began > BACKGROUND)


def causes(evidence: Evidence) -> list[Trouble]:
    """Troubles that explain others and began in time to explain this one.

    First those in the file that the question is about, then by their beginning.
    """
    best = chosen_files(evidence)[0].name if evidence.files else ""
    main = main_trouble(evidence)
    found = [
        one
        for one in troubles(evidence)
        if one.sign and one.sign.role == "cause" and main and not earlier(main, one)
    ]
    return sorted(found, key=lambda one: (one.file != best, one.first_time, one.first.line))
