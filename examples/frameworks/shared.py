"""What the three agents share: the client that asks by steps, the steps, and their effects.

The agents investigate logs with the same tools and, without a configured model, with the same
scripted model as `investigation/`.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from pydantic import BaseModel, JsonValue, TypeAdapter

from investigation.model_server import serve_scripted_model
from investigation.prompts import SYSTEM, TOOLS
from investigation.settings import Settings, load_settings
from investigation.steps import CallTool, Draft, ToolResult
from investigation.tools import run_tool_apart
from two_workers import (
    AgentError,
    App,
    Call,
    Effect,
    PermanentFailure,
    Retry,
    RetryLater,
    Step,
    advance,
    close,
)
from two_workers.bridge import Context

INSTRUCTIONS = SYSTEM
LOG_TOOLS = [tool["function"] for tool in TOOLS if tool["function"]["name"] != "report"]
"""Name, description and JSON Schema of each tool but the one that ends the investigation."""


class Question(BaseModel):
    """The payload. `corpus`: a folder of logs; empty means the incident that comes with us."""

    text: str
    corpus: str = ""


Agent = Callable[[Question], Coroutine[Any, Any, Any]]


class AskModel(Step[dict[str, JsonValue]]):
    """One request to the model's API, as the framework wants it sent."""

    path: str
    body: dict[str, JsonValue]


UNUSED = DefaultAsyncHttpxClient(trust_env=False, verify=False)
"""No request ever reaches it. Made once, here: a client of its own reads certificates from disk."""


class StepOpenAI(AsyncOpenAI):
    """An OpenAI client without a network: each request is a step, and its recorded answer returns.

    The real address and key belong to the effect, so no key is in the agent nor in its record.
    """

    def __init__(self, steps: Context) -> None:
        super().__init__(
            api_key="known to the effect", base_url="http://by.step/v1", http_client=UNUSED
        )
        self._steps = steps

    async def request(self, cast_to: Any, options: Any, *, stream: bool = False, **_: Any) -> Any:
        """What every method of the client ends in. Raises `AgentError` for a stream."""
        if stream:
            raise AgentError("a step is recorded whole, so it cannot stream; ask without stream")
        body = json.loads(json.dumps(options.json_data))
        answer = await self._steps.step(AskModel(path=options.url, body=body))
        return TypeAdapter(cast_to).validate_python(answer)


async def use_tool(steps: Context, question: Question, name: str, arguments: dict[str, Any]) -> str:
    """Have a log tool called. An error is text too: the model reads it."""
    result = await steps.step(CallTool(corpus=question.corpus, tool=name, arguments=arguments))
    return result.text if result.ok else f"error: {result.text}"


def answer_of(draft: Draft) -> dict[str, JsonValue]:
    """The result of a run."""
    return {"answer": draft.answer, "findings": [finding.title for finding in draft.findings]}


# Effects.


@dataclass(frozen=True)
class Resources:
    """What a worker opens once."""

    settings: Settings
    model: httpx.AsyncClient


@asynccontextmanager
async def open_resources() -> AsyncIterator[Resources]:
    """A connection to the configured model, or to the scripted one."""
    async with AsyncExitStack() as stack:
        settings = load_settings()
        base_url = settings.model_base_url
        if not base_url:
            base_url = await stack.enter_async_context(serve_scripted_model())
        key = settings.model_api_key.get_secret_value()
        client = httpx.AsyncClient(
            base_url=base_url,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=settings.model_timeout,
        )
        yield Resources(settings, await stack.enter_async_context(client))


def rehearse(agent: Agent) -> None:
    """Let the agent ask for its first step, and end it.

    Frameworks import parts of themselves when they are first used. A worker does that here, before
    it takes runs: inside Temporal's sandbox such an import would be watched, and refused.
    """
    plan = agent(Question(text="rehearsal"))
    advance(plan, None)
    close(plan)


async def ask_model(step: AskModel, call: Call) -> dict[str, JsonValue]:
    """Send the request. 429 waits as long as it says; other 4xx cannot be helped by repeating."""
    resources: Resources = call.resources
    body = {**step.body, "model": resources.settings.model_name}
    response = await resources.model.post(step.path, json=body, headers={"X-Request-Id": call.key})
    if response.status_code == 429:
        raise RetryLater("the model asked for patience", after=retry_after(response))
    if response.is_client_error:
        raise PermanentFailure(f"the model refused the request: {response.status_code}")
    response.raise_for_status()
    answer: dict[str, JsonValue] = response.json()
    return answer


def retry_after(response: httpx.Response) -> float:
    """Seconds, as the header says; 1 if it says nothing that we understand."""
    try:
        return max(0.0, float(response.headers.get("retry-after", "1")))
    except ValueError:
        return 1.0


async def call_tool(step: CallTool, call: Call) -> ToolResult:
    root = call.resources.settings.corpus_root
    return await run_tool_apart(step.corpus, step.tool, step.arguments, root=root)


def framework_app(kind: str, agent: Agent) -> App:
    """An app around one of the three agents."""

    @asynccontextmanager
    async def resources() -> AsyncIterator[Resources]:
        rehearse(agent)
        async with open_resources() as opened:
            yield opened

    effects = {
        AskModel: Effect(ask_model, timeout=100, retry=Retry(max_attempts=5)),
        CallTool: Effect(call_tool, timeout=70),
    }
    return App(kind=kind, agent=agent, effects=effects, resources=resources)
