"""The step of the chaos app."""

from __future__ import annotations

from two_workers import Step


class Visit(Step[str]):
    place: str
