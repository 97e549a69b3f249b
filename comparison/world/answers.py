"""What the world says: the app's own scripted model and its own log tools, over the network.

Each answer is a function of its input alone. That makes the comparison of a run under faults with
its fault-free twin sound, and lets equal questions be answered from memory: the world must not
become the bottleneck of what it measures.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from comparison.world.app import Answer
from investigation.scripted_model import respond
from investigation.settings import Settings
from investigation.tools import run_tool


class InvestigationAnswers:
    """Answers for the investigation app. Prices are the app's settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def model(self, body: dict[str, Any]) -> Answer:
        """A chat completion, its tokens and its price. Raises `ValueError` for a bad request."""
        completion = json.loads(_completion(_canonical(body)))
        tokens_in = int(completion["usage"]["prompt_tokens"])
        tokens_out = int(completion["usage"]["completion_tokens"])
        price = self._settings.price_in * tokens_in + self._settings.price_out * tokens_out
        return Answer(completion, tokens_in, tokens_out, round(price))

    def tool(self, name: str, body: dict[str, Any]) -> Answer:
        """A tool's result; a tool's own error is a result too."""
        return Answer(json.loads(_tool_result(name, _canonical(body))))

    def report(self, body: dict[str, Any]) -> Answer:
        """A receipt."""
        return Answer({"accepted": True})


def _canonical(body: dict[str, Any]) -> str:
    return json.dumps(body, sort_keys=True)


@lru_cache(maxsize=20_000)
def _completion(body: str) -> str:
    try:
        return json.dumps(respond(json.loads(body)))
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a chat completion request: {error!r}") from error


@lru_cache(maxsize=20_000)
def _tool_result(name: str, body: str) -> str:
    request = json.loads(body)
    if not isinstance(request.get("arguments"), dict):
        raise ValueError("expected {'corpus': ..., 'arguments': {...}}")
    return run_tool(str(request.get("corpus", "")), name, request["arguments"]).model_dump_json()
