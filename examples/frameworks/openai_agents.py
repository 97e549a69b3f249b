"""An agent of the OpenAI Agents SDK.

two-workers worker --app examples.frameworks.openai_agents:APP
"""

from __future__ import annotations

import json
from typing import Any

from agents import Agent, FunctionTool, OpenAIChatCompletionsModel, RunConfig, Runner
from agents.agent import StopAtTools
from agents.tool_context import ToolContext

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
    """Investigate until the model calls `report`."""

    async def invoke(context: ToolContext[Any], arguments: str) -> str:
        return await use_tool(steps, question, context.tool_name, json.loads(arguments or "{}"))

    async def report(context: ToolContext[Any], arguments: str) -> str:
        return Draft.model_validate_json(arguments).model_dump_json()

    def tool(name: str, description: str, schema: dict[str, Any], run: Any) -> FunctionTool:
        return FunctionTool(name, description, schema, run, strict_json_schema=False)

    agent = Agent(
        name="investigator",
        instructions=INSTRUCTIONS,
        model=OpenAIChatCompletionsModel(model="by-step", openai_client=StepOpenAI(steps)),
        tools=[
            *(tool(t["name"], t["description"], t["parameters"], invoke) for t in LOG_TOOLS),
            tool("report", "Hand in your findings.", Draft.model_json_schema(), report),
        ],
        tool_use_behavior=StopAtTools(stop_at_tool_names=["report"]),
    )
    config = RunConfig(tracing_disabled=True)  # tracing uses a thread
    result = await Runner.run(agent, question.text, run_config=config)
    return answer_of(Draft.model_validate_json(result.final_output))


APP = framework_app("openai-agents", investigate)
