"""Ask a model through any OpenAI-compatible endpoint, once.

The engine owns retries, so the client has none. Whatever comes back becomes exactly one of:

| what comes back                                   | becomes                                  |
|---------------------------------------------------|------------------------------------------|
| an answer, also a truncated or malformed one      | a reply; the agent deals with it         |
| refusal, content filter, conversation too long    | a reply that says so, for the agent      |
| 429                                               | `RetryLater` after what Retry-After says |
| 429 for a used-up quota, 401, 403, 404, other 4xx | `PermanentFailure`: trying again is vain |
| 409 `stale_fence`                                 | `StaleFence`: this worker is a zombie    |
| 5xx, 408, no connection, timeout, not valid JSON  | an exception that the engine retries     |

The body is read with our own small models and not the client's, which would hand a half-filled
object of a careless vendor on to us. Steps do not stream: a reply is recorded whole or not at all.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from email.utils import parsedate_to_datetime
from typing import Any, Literal

from openai import APIConnectionError, APIStatusError, APITimeoutError, AsyncOpenAI
from pydantic import BaseModel, Field, ValidationError

from investigation.identity import identity_headers, refuse_if_stale
from investigation.prompts import chat_request
from investigation.settings import Settings
from investigation.steps import (
    REPLY_TEXT,
    TOOL_CALLS,
    AskModel,
    ModelReply,
    ToolCall,
    without_zero_bytes,
)
from two_workers import Call, MicroUSD, PermanentFailure, RetryLater

LONGEST_WAIT = 3_600.0
"""Seconds. An endpoint that asks for more patience than this has in effect said no."""
LONGEST_REPLY = 4 * 1024 * 1024
"""Bytes of a response. Parsing more would hold up the worker's heartbeats."""
NAME = 200
"""Characters of a tool call's id and name."""
MOST_ATTEMPTS = 30
"""Patience that is asked for does not count as a failure, so it needs an end of its own."""
_DEFAULT_WAIT = 5.0
_OVERFLOW = ("context_length", "context length", "context window", "prompt is too long")


class ModelUnavailable(Exception):
    """The endpoint did not answer, or not usefully. Worth another try."""


# What of a chat completion is read.


class _Function(BaseModel):
    name: str
    arguments: str = ""


class _Call(BaseModel):
    id: str = ""
    function: _Function


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(BaseModel):
    finish_reason: str | None = None
    message: _Message


class _Usage(BaseModel):
    prompt_tokens: int = Field(ge=0)
    completion_tokens: int = Field(ge=0)


class _Completion(BaseModel):
    model: str = ""
    choices: list[_Choice] = Field(min_length=1)
    usage: _Usage | None = None


class ModelClient:
    """One endpoint, one model, its price. Made once per worker."""

    def __init__(self, settings: Settings, base_url: str) -> None:
        self._settings = settings
        self._base_url = base_url
        self._client = AsyncOpenAI(
            base_url=base_url,
            api_key=settings.model_api_key.get_secret_value() or "none",
            max_retries=0,
            timeout=settings.model_timeout,
        )

    async def close(self) -> None:
        await self._client.close()

    async def ask(self, step: AskModel, call: Call) -> ModelReply:
        """One model call. Errors: see the table of this module."""
        request = chat_request(
            step,
            model=self._settings.model_name,
            max_output_tokens=self._settings.max_output_tokens,
        )
        request[self._settings.max_tokens_name] = request.pop("max_completion_tokens")
        headers = identity_headers(call) if self._settings.identify_calls else {}
        turned_down: APIStatusError | None = None
        try:
            # The client's own timeout is for each read: a reply that drips would never end.
            async with asyncio.timeout(self._settings.model_timeout):
                raw = await self._client.chat.completions.with_raw_response.create(
                    **request, extra_headers=headers
                )
        except (APITimeoutError, TimeoutError):
            raise ModelUnavailable(
                f"no answer from {self._base_url} in {self._settings.model_timeout:g} s"
            ) from None
        except APIConnectionError as error:
            reason = error.__cause__ or error
            raise ModelUnavailable(f"cannot reach {self._base_url}: {reason}") from None
        except APIStatusError as error:
            turned_down = error
        if turned_down is not None:  # outside of `except`: a traceback would repeat its text
            return self._turned_down(turned_down, call)
        if len(raw.content) > LONGEST_REPLY:
            raise ModelUnavailable(f"{self._base_url} sent {len(raw.content):,} bytes")
        try:
            completion = _Completion.model_validate_json(raw.content)
        except ValidationError as error:
            fault = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, fault["loc"])) or "body"
            raise ModelUnavailable(
                f"{self._base_url} sent something else than a chat completion: "
                f"{place}: {fault['msg']}"
            ) from None
        return self._reply(completion, request)

    def _reply(self, completion: _Completion, request: dict[str, Any]) -> ModelReply:
        choice = completion.choices[0]
        message = choice.message
        calls = tuple(
            ToolCall(
                id=without_zero_bytes(one.id)[:NAME] or f"call_{n}",
                name=without_zero_bytes(one.function.name)[:NAME],
                arguments=without_zero_bytes(one.function.arguments),
            )
            for n, one in enumerate(message.tool_calls or [])
        )
        usage = completion.usage or _Usage(
            prompt_tokens=_estimate(request), completion_tokens=_estimate(message.model_dump())
        )
        return ModelReply(
            stop=_why_it_stopped(choice),
            text=without_zero_bytes(message.refusal or message.content or "")[:REPLY_TEXT],
            calls=calls[: 2 * TOOL_CALLS],
            model=completion.model or self._settings.model_name,
            tokens_in=usage.prompt_tokens,
            tokens_out=usage.completion_tokens,
            cost=self._settings.price(usage.prompt_tokens, usage.completion_tokens),
        )

    def _turned_down(self, error: APIStatusError, call: Call) -> ModelReply:
        """A 4xx or 5xx: the reply that it amounts to, or the exception for the engine."""
        status, body = error.status_code, error.body
        refuse_if_stale(status, body, call)
        code = str(body.get("code") or body.get("type") or "") if isinstance(body, dict) else ""
        message = self._without_key(str(error))[:500]
        if status in (400, 413, 422) and any(sign in f"{code} {message}" for sign in _OVERFLOW):
            return self._nothing("overflow", message)
        if status in (400, 422) and "content_filter" in code:
            return self._nothing("filtered", message)
        if status == 429 and code != "insufficient_quota":
            wait = retry_after(error.response.headers.get("retry-after"), time.time())
            if wait <= LONGEST_WAIT and call.attempt < MOST_ATTEMPTS:
                raise RetryLater(f"{self._base_url} asks for patience: {message}", after=wait)
            message = f"it asks to wait {wait:.0f} s, for the {call.attempt}. time; {message}"
        if status >= 500 or status in (408, 409):
            raise ModelUnavailable(f"{self._base_url} answered {status}: {message}")
        raise PermanentFailure(f"{self._base_url} answered {status}: {message}")

    def _nothing(self, stop: Literal["overflow", "filtered"], message: str) -> ModelReply:
        return ModelReply(
            stop=stop,
            text=message,
            model=self._settings.model_name,
            tokens_in=0,
            tokens_out=0,
            cost=0,
        )

    def _without_key(self, text: str) -> str:
        """Some vendors repeat the key in their complaint; a record must not."""
        key = self._settings.model_api_key.get_secret_value()
        return text.replace(key, "***") if key else text


def _why_it_stopped(choice: _Choice) -> Literal["answered", "truncated", "refused", "filtered"]:
    if choice.message.refusal:
        return "refused"
    if choice.finish_reason == "content_filter":
        return "filtered"
    return "truncated" if choice.finish_reason == "length" else "answered"


def retry_after(header: str | None, now: float) -> float:
    """Seconds to wait, from a Retry-After header in either form: seconds, or an HTTP date."""
    if not header:
        return _DEFAULT_WAIT
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - now
        except ValueError:
            return _DEFAULT_WAIT
    return max(0.0, seconds) if math.isfinite(seconds) else _DEFAULT_WAIT


def worst_case(settings: Settings, step: AskModel) -> MicroUSD:
    """The most that a call will cost: dense text has about two characters to a token."""
    request = chat_request(
        step, model=settings.model_name, max_output_tokens=settings.max_output_tokens
    )
    return settings.price(len(json.dumps(request)) // 2, settings.max_output_tokens)


def _estimate(body: Any) -> int:
    """Tokens of a text whose vendor did not count them: four characters each."""
    return len(json.dumps(body)) // 4
