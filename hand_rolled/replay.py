"""Replay: what a run has recorded, held against what its agent asks for now. And its end."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from hand_rolled.entries import OpenStep, Place, Recorded
from hand_rolled.journal import Journal
from two_workers.errors import ReplayMismatch
from two_workers.steps import Failed, Plan, Step, Succeeded, close, fingerprint, load_outcome

log = logging.getLogger("hand_rolled.worker")


@dataclass(frozen=True)
class Replay:
    """The journal of one run as it was when this drive began, and what earlier attempts left."""

    run_id: str
    recorded: dict[Place, Recorded]
    open_steps: dict[Place, OpenStep]

    @classmethod
    async def of(cls, journal: Journal) -> Replay:
        """Read both; what was recorded under any generation counts."""
        return cls(journal.lease.run_id, *await journal.load())

    def outcome(self, place: Place, step: Step[Any]) -> Succeeded | Failed | None:
        """The recorded outcome of a step, or None. Raises `ReplayMismatch` if another was asked."""
        found = self.recorded.get(place)
        if found is None:
            return None
        asked = fingerprint(step)
        if found.fingerprint != asked:
            raise self._mismatch(place, found.fingerprint, asked)
        try:
            return load_outcome(step, found.outcome)
        except ValidationError as error:
            asked = f"{asked}, whose type {error.error_count()} part(s) of it do not fit"
            raise self._mismatch(place, "another type of result", asked) from error

    def open_step(self, place: Place) -> OpenStep:
        """What earlier attempts at a step left."""
        return self.open_steps.get(place, OpenStep())

    def ends_at(self, end: Place) -> None:
        """Raises `ReplayMismatch` if more of this batch was recorded than the agent asks for."""
        if not self.recorded:
            return
        beyond = [p for p in self.recorded if p.batch == end.batch and p.position >= end.position]
        if beyond:
            raise self._mismatch(min(beyond), self.recorded[min(beyond)].fingerprint, "nothing")

    def _mismatch(self, place: Place, recorded: str, asked: str) -> ReplayMismatch:
        key = f"{self.run_id}/{place.batch}.{place.position}"
        return ReplayMismatch(key=key, recorded=recorded, asked=asked)


def end(plan: Plan) -> None:
    """End the agent. What it does wrong in a `finally` must not decide how its run ends."""
    try:
        close(plan)
    except Exception:
        log.exception("an agent that was being ended did not end cleanly")
