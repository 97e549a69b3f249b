"""The scripted model: a chat-completions request in, a response out. The offline default.

A pure function of the request, on every machine and under every hash seed: no clock, no chance, no
memory. Like a real model it knows only the messages that it is sent: it recognises how far it has
come by the tool calls in them, and cites only lines that tool results have shown. Tokens are
estimated from the text, four characters each, so that money in an offline run is an honest
order of magnitude and equal on every repetition.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from investigation.scripted.evidence import read_messages
from investigation.scripted.plan import next_calls
from investigation.scripted.writer import write_report

MODEL = "scripted-1"
_CHARACTERS_PER_TOKEN = 4
_NOTES = (
    "First, which files are there.",
    "Now what they say about the question, and about trouble in general.",
    "A closer look at the files that fit.",
    "The lines around the most telling places, and who is affected.",
)


def respond(request: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a chat-completions request. Raises `KeyError` or `ValueError` on a malformed one."""
    evidence = read_messages(request)
    asks = next_calls(evidence)
    if asks:
        note = _NOTES[evidence.rounds]
        calls = [
            _call(f"call_{evidence.rounds}_{n}/{ask.purpose}", ask.tool, ask.arguments)
            for n, ask in enumerate(asks)
        ]
    else:
        note = "That is enough to report."
        calls = [_call(f"call_{evidence.rounds}_0/report", "report", write_report(evidence))]
    message = {"role": "assistant", "content": note, "tool_calls": calls}
    tokens_in, tokens_out = _tokens(request), _tokens(message)
    return {
        "id": f"chatcmpl-scripted-{evidence.rounds}",
        "object": "chat.completion",
        "created": 0,
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {
            "prompt_tokens": tokens_in,
            "completion_tokens": tokens_out,
            "total_tokens": tokens_in + tokens_out,
        },
    }


def _call(call_id: str, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {"id": call_id, "type": "function", "function": function}


def _tokens(value: Mapping[str, Any]) -> int:
    return len(json.dumps(value, sort_keys=True)) // _CHARACTERS_PER_TOKEN
