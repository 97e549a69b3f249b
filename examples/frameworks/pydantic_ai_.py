"""An agent of pydantic-ai.

two-workers worker --app examples.frameworks.pydantic_ai_:APP
"""

from __future__ import annotations

from functools import partial
from typing import Any

from pydantic_ai import Agent, Tool, ToolOutput
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from examples.frameworks.shared import (
    INSTRUCTIONS,
    LOG_TOOLS,
    Question,
    StepOpenAI,
    answer_of,
    framework_app,
    use_tool,
)
from investigation.steps import Draft
from two_workers.bridge import Context, plan_of


@plan_of
async def investigate(steps: Context, question: Question) -> dict[str, Any]:
    """Investigate until the model hands in a valid `report`."""

    async def invoke(name: str, **arguments: Any) -> str:
        return await use_tool(steps, question, name, arguments)

    agent = Agent(
        OpenAIChatModel("by-step", provider=OpenAIProvider(openai_client=StepOpenAI(steps))),
        instructions=INSTRUCTIONS,
        output_type=ToolOutput(Draft, name="report"),
        tools=[
            Tool.from_schema(
                partial(invoke, tool["name"]),
                name=tool["name"],
                description=tool["description"],
                json_schema=tool["parameters"],
            )
            for tool in LOG_TOOLS
        ],
    )
    result = await agent.run(question.text)
    return answer_of(result.output)


APP = framework_app("pydantic-ai", investigate)
