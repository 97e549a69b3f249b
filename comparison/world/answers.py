"""What the world says: the app's own scripted model and its own log tools, over the network.

Each answer is a function of the request alone. That makes the comparison of a run under faults
with its fault-free twin sound, and lets equal questions be answered from memory: the world must
not become the bottleneck of what it measures.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from comparison.world.app import Answer
from investigation.scripted_model import respond
from investigation.settings import Settings
from investigation.tools import run_tool

_REMEMBERED = 20_000


class InvestigationAnswers:
    """Answers for the investigation app. Prices are the app's settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._completed: Callable[[bytes], Answer] = lru_cache(_REMEMBERED)(self._complete)

    def model(self, body: bytes) -> Answer:
        """A chat completion, its tokens and its price. Raises `ValueError` for a bad request."""
        return self._completed(body)

    def tool(self, name: str, body: bytes) -> Answer:
        """A tool's result; a tool's own error is a result too. Raises `ValueError`."""
        return _tool_result(name, body)

    def report(self, body: bytes) -> Answer:
        """A receipt. Raises `ValueError` for what is not a report."""
        _object(body)
        return Answer(b'{"accepted":true}')

    def _complete(self, body: bytes) -> Answer:
        try:
            completion = respond(_object(body))
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a chat completion request: {error!r}") from error
        tokens_in = int(completion["usage"]["prompt_tokens"])
        tokens_out = int(completion["usage"]["completion_tokens"])
        price = self._settings.price(tokens_in, tokens_out)
        return Answer(json.dumps(completion).encode(), tokens_in, tokens_out, price)


@lru_cache(_REMEMBERED)
def _tool_result(name: str, body: bytes) -> Answer:
    request = _object(body)
    if not isinstance(request.get("arguments"), dict):
        raise ValueError("expected {'corpus': ..., 'arguments': {...}}")
    result = run_tool(str(request.get("corpus", "")), name, request["arguments"])
    return Answer(result.model_dump_json().encode())


def _object(body: bytes) -> dict[str, Any]:
    found = json.loads(body)
    if not isinstance(found, dict):
        raise ValueError("expected a JSON object")
    return found
