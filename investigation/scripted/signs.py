"""What an engineer on call knows before opening a log: phrases, and what they usually mean.

The order of the signs matters: the first that matches a line explains it, so the specific ones
stand before the general ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Role = Literal["change", "cause", "symptom", "success", "weak"]


@dataclass(frozen=True)
class Sign:
    """A phrase (a regular expression without capturing groups) and its meaning.

    `change`: someone altered something. `cause`: explains other trouble. `symptom`: trouble
    without its reason. `success`: the opposite of trouble. `weak`: alarming words, little meaning.
    """

    name: str
    role: Role
    pattern: str
    meaning: str
    advice: str = ""


SIGNS = (
    # Changes.
    Sign(
        "configuration change",
        "change",
        r"config\w* (?:changed|reload\w*|updated?|applied|pushed)|(?:applied|reloaded) \w*\W?config"
        r"|feature flag|\bset \S+ (?:from )?\S+ (?:->|to) \S+",
        "a configuration was changed",
    ),
    Sign(
        "deployment",
        "change",
        r"\b(?:deploy(?:ed|ing|ment)|roll(?:ed|ing)? ?out|rollback|upgrad(?:ed|ing))\b"
        r"|migration (?:started|applied)",
        "something was deployed",
    ),
    # Causes: the line says why.
    Sign(
        "exhausted connection pool",
        "cause",
        r"pool (?:\S+ )?(?:is |was )?(?:exhausted|timeout)|no (?:free|available|idle) connection"
        r"|too many connections|remaining connection slots|waiting for a connection",
        "all connections of a pool were in use",
        "Compare the pool's size with the number of its users, and with yesterday's.",
    ),
    Sign(
        "disk full",
        "cause",
        r"no space left|disk (?:is )?full|quota exceeded",
        "a disk was full",
        "Free space on that disk, and find what filled it.",
    ),
    Sign(
        "out of memory",
        "cause",
        r"out of memory|outofmemory|oom[- ]?kill|cannot allocate memory",
        "memory ran out",
        "Look at the memory of that process over time; a steady rise is a leak.",
    ),
    Sign("too many open files", "cause", r"too many open files", "file handles ran out"),
    Sign("deadlock", "cause", r"deadlock", "transactions or threads blocked each other"),
    Sign(
        "bad certificate",
        "cause",
        r"certificate (?:has )?expired|certificate verify failed|x509",
        "a certificate was not accepted",
        "Check the dates and the issuer of the certificate.",
    ),
    Sign(
        "no route to host",
        "cause",
        r"no ?route ?to ?host|network is unreachable|host (?:is )?unreachable",
        "the network had no path to the other host",
        "Check the network path and the routes between the two hosts at that time.",
    ),
    Sign(
        "address change",
        "cause",
        r"address change detected|unknown ?host|name or service not known|could not resolve",
        "a host name no longer resolved as before (name service or network)",
        "Resolve the host name from the affected host, and compare with its real address.",
    ),
    Sign(
        "peer not reachable",
        "cause",
        r"connection refused|cannot open channel"
        r"|(?:failed|unable|could not|cannot) (?:to )?connect",
        "the other side did not take connections: its process was down or not reachable",
        "Look at the logs of the other side at the same time: was its process running?",
    ),
    # Security.
    Sign(
        "failed login",
        "symptom",
        r"failed password|authentication failure|check pass; user unknown|login failed",
        "logins were tried with a wrong name or password",
        "Block the addresses with the most failures, and turn password logins off.",
    ),
    Sign(
        "unknown user name",
        "symptom",
        r"invalid user|illegal user|unknown user",
        "user names were tried that do not exist here",
    ),
    Sign(
        "successful login",
        "success",
        r"accepted (?:password|publickey|keyboard)|session opened for user|logged in",
        "somebody logged in",
    ),
    Sign(
        "name and address disagree",
        "weak",
        r"possible break-in attempt",
        "sshd warns that an address and its name disagree; this is usual for scanners and proves "
        "no break-in",
    ),
    Sign(
        "too many login attempts",
        "symptom",
        r"too many authentication|max(?:imum)? (?:authentication )?(?:retries|attempts)"
        r"|more authentication failures|no more user authentication",
        "somebody tried until the server cut him off",
    ),
    # Symptoms: trouble without its reason.
    Sign(
        "lost contact with the resource manager",
        "symptom",
        r"error in contacting rm",
        "the job's master no longer reached the cluster's resource manager",
    ),
    Sign(
        "lease not renewed",
        "symptom",
        r"failed to renew lease",
        "the file system's name node could not be reached to keep a lease",
    ),
    Sign(
        "interrupted transfer",
        "symptom",
        r"exception while serving|slow readprocessor|error recovery for block",
        "data could not be sent to its reader, who often has just gone away",
        "Look at the readers of the most affected blocks; one that closes early is harmless.",
    ),
    Sign(
        "connection cut",
        "symptom",
        r"connection (?:is |was )?(?:broken|lost|closed|aborted)|broken pipe|reset by peer"
        r"|end of stream|unexpected exception causing shutdown|goodbye|disconnect",
        "the other side ended a connection",
        "Look at the logs of the peers at the same times; the side that closed knows why.",
    ),
    Sign(
        "worker thread stopped",
        "symptom",
        r"interrupt(?:ed|ing) (?:while waiting|sendworker)|worker leaving thread",
        "the threads of a connection ended after it was gone",
        "Look at the logs of the peers at the same times; the side that closed knows why.",
    ),
    Sign("timeout", "symptom", r"timed? ?out|timeout|deadline exceeded", "something took too long"),
    Sign(
        "server error",
        "symptom",
        r"\b(?:status[:=]? ?|http/\d(?:\.\d)?\" )5\d\d\b|bad gateway|service unavailable",
        "requests were answered with a server error",
        "Follow one failed request through the services by its id or time.",
    ),
    Sign(
        "overload",
        "symptom",
        r"queue (?:is )?full|backlog|overload|throttl|circuit (?:breaker )?(?:is )?open|load shed",
        "more work came in than was done",
    ),
    Sign(
        "missing thing",
        "symptom",
        r"not found|no such|does not exist|unknown base file",
        "something was expected and not there",
        "Check whether the missing thing was removed on purpose (clean-up jobs do that).",
    ),
    Sign(
        "crash",
        "symptom",
        r"uncaught|segfault|core dumped|panic|exited :|killed by",
        "a process or thread ended unexpectedly",
    ),
    Sign(
        "success",
        "success",
        r"spawned successfully|vm started|completed successfully|succeeded\b|recovered"
        r"|back to normal|\bdone with exit code 0",
        "things worked",
    ),
)

TROUBLE = (
    r"\b(?:WARN|WARNING|ERROR|FATAL|SEVERE|CRITICAL|EMERG|PANIC)\b"
    r"|\b(?:[Ff]ail(?:ed|ure|ing)?|FAILED|[Ee]xception|[Ff]atal|[Dd]enied|[Rr]efused|[Uu]nreachable"
    r"|[Tt]imed out|[Bb]roken|[Cc]rash(?:ed)?|[Ii]nvalid|[Ii]llegal|BREAK-IN)\b|Exception\b"
    r"|HTTP/[\d.]+\" 5\d\d\b"
)
"""Lines that say that something is wrong, whatever it is (case matters: `WARN`, not `warn`)."""

CHANGES = "|".join(sign.pattern for sign in SIGNS if sign.role == "change")


def sign_of(text: str) -> Sign | None:
    """The first sign that explains a line, if any does."""
    return next((sign for sign in SIGNS if re.search(sign.pattern, text, re.IGNORECASE)), None)
