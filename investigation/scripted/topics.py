"""Kinds of questions, and what bears on each in the logs.

The first topic whose words a question uses is taken; the last one fits any question.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Topic:
    """A kind of question: which words show it, and what bears on it in the logs.

    `lines` are about it, `success` is the contrary, `outcome` states in so many words what the
    question presumes (described by `presumed`), and `entities` are worth counting. `strict`: other
    trouble is no answer.
    """

    name: str
    asked: str
    lines: str = ""
    success: str = r"recovered|back to normal|completed successfully"
    outcome: str = ""
    presumed: str = ""
    entities: tuple[tuple[str, str], ...] = ()
    strict: bool = False


_ADDRESS = r"(?<![\d.])(?!0\.|127\.)\d{1,3}(?:\.\d{1,3}){3}"

TOPICS = (
    Topic(
        "intrusion",
        r"break(?:ing)?[- ]?in|intru|attack|brute|hack|log ?in|password|unauthor|compromis",
        lines=r"failed password|invalid user|break-in|authentication failure",
        success=r"accepted (?:password|publickey|keyboard\S*) for \S+ from (\S+)",
        entities=(
            ("address", rf"(?:from |rhost=)({_ADDRESS})"),
            ("user name", r"password for (?:invalid user )?(\S+) from"),
        ),
        strict=True,
    ),
    Topic(
        "blocks",
        r"\bblocks?\b|replica|datanode",
        lines=r"\bblk_",
        success=r"verification succeeded",
        outcome=r"corrupt|missing block|lost block|block \S+ is lost|checksum",
        presumed="a block is corrupt or lost",
        entities=(("block", r"(blk_-?\d+)"), ("host", rf"({_ADDRESS})(?=:\d+:Got)")),
    ),
    Topic(
        "instances",
        r"\binstances?\b|\bvms?\b|virtual machine",
        lines=r"\binstance\b",
        success=r"spawned successfully",
        outcome=r"failed to spawn|error state|build of instance \S+ aborted|no valid host",
        presumed="an instance failed to start",
        entities=(("instance", r"instance: ([0-9a-f-]{36})"),),
    ),
    Topic(
        "job",
        r"\bjobs?\b|\btasks?\b|batch",
        lines=r"\bjob|task|container",
        success=r"task transitioned from \w+ to succeeded|job \S+ completed successfully",
        outcome=r"job\S* (?:job )?transitioned from \w+ to (?:failed|killed|error)"
        r"|job \S+ (?:failed|was killed)",
        presumed="the job itself failed",
        entities=(("service address", r"(?:to|[Oo]ld:) ([\w.-]+[/:][\w.:/-]*\d)"),),
    ),
    Topic(
        "connections",
        r"connect|network|quorum|peer|reach|session|timeout",
        lines=r"connection|channel|socket",
        entities=(("peer", r"for id (\d+)"), ("address", rf"({_ADDRESS})")),
    ),
    Topic("anything", r"", entities=(("address", rf"({_ADDRESS})"),)),
)


def topic_of(question: str) -> Topic:
    """The first topic whose words the question uses."""
    return next(topic for topic in TOPICS if re.search(topic.asked, question, re.IGNORECASE))


_STOP_WORDS = (
    "a an and any are at be been by can could did do does for from had has have how i in into is "
    "it its me my of on or our out see shall should so some someone something tell that the their "
    "them then there these they this those to up us was we went were what when where which who "
    "whom why will with would you your about log logs happen happened wrong going problem problems "
    "cause"
)
_STOP = frozenset(_STOP_WORDS.split())
_MOST_WORDS = 6
_ENDINGS = ("ions", "ings", "ion", "ing", "ies", "ed", "es", "s", "e")
_RELATED = {
    "break": "break|broke",
    "fail": "fail",
    "slow": "slow|latency|took",
    "crash": "crash|exit|kill",
    "start": "start|spawn|boot|build",
}


def words_of(question: str) -> dict[str, str]:
    """What the question names: beginnings of words as regular expressions, and the words."""
    words: dict[str, str] = {}
    for word in re.findall(r"[a-z][a-z0-9_-]+", question.lower()):
        if word not in _STOP:
            ending = next((e for e in _ENDINGS if word.endswith(e) and len(word) - len(e) > 3), "")
            stem = word.removesuffix(ending)
            words.setdefault(_RELATED.get(stem, re.escape(stem)), word)
    return dict(list(words.items())[:_MOST_WORDS])
