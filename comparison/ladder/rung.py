"""A rung: one idea of the story, the form without it, the form with it, and who convicts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from comparison.ladder.checks import Judge
from comparison.ladder.stage import Stage
from comparison.ladder.table import SOUND, Form


@dataclass(frozen=True, kw_only=True)
class Rung:
    """`scenario` brings about the situation; it is the same for both forms.

    `breaks` says what goes wrong without the idea, `holds` what happens with it.
    """

    number: int
    title: str
    breaks: str
    holds: str
    broken: Form
    fixed: Form = SOUND
    scenario: Callable[[Stage], Awaitable[None]]
    judge: Judge
    trials: int = 3
