"""Performs a bridged plan without an engine."""

from __future__ import annotations

from typing import Any

from tests.bridge.agents import Ask
from two_workers import Batch, advance
from two_workers.steps import Failed, Plan, Succeeded

FAILED = Failed(error="ConnectionError", message="refused", attempts=3)


def answer(step: Any) -> Succeeded | Failed:
    return FAILED if step.text.startswith("bad") else Succeeded(value=f"<{step.text}>")


def drive(plan: Plan) -> tuple[Any, list[list[str]]]:
    """Perform a plan to its end. Returns its value and the texts of each batch."""
    batches: list[list[str]] = []
    request = advance(plan, None)
    while isinstance(request, Batch):
        batches.append([step.text for step in request.steps])
        request = advance(plan, [answer(step) for step in request.steps])
    return request.value, batches


def a(text: str) -> Ask:
    return Ask(text=text)
