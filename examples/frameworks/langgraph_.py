"""An agent of LangGraph.

two-workers worker --app examples.frameworks.langgraph_:APP
"""

from __future__ import annotations

import json
import operator
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from examples.frameworks.shared import (
    INSTRUCTIONS,
    Question,
    StepOpenAI,
    answer_of,
    framework_app,
    use_tool,
)
from investigation.prompts import TOOLS
from investigation.steps import Draft
from two_workers.bridge import Context, plan_of


class State(TypedDict):
    """The conversation, as chat-completions messages."""

    messages: Annotated[list[dict[str, Any]], operator.add]


@plan_of
async def investigate(steps: Context, question: Question) -> dict[str, Any]:
    """Investigate until the model calls `report`."""
    client = StepOpenAI(steps)

    async def model(state: State) -> State:
        completion = await client.chat.completions.create(
            model="by-step", messages=state["messages"], tools=TOOLS
        )
        return {"messages": [completion.choices[0].message.model_dump(exclude_none=True)]}

    async def tool(call: dict[str, Any]) -> State:
        arguments = json.loads(call["function"]["arguments"])
        text = await use_tool(steps, question, call["function"]["name"], arguments)
        return {"messages": [{"role": "tool", "tool_call_id": call["id"], "content": text}]}

    async def route(state: State) -> list[Send] | str:  # LangGraph runs a plain `def` in a thread
        calls = state["messages"][-1]["tool_calls"]
        if any(call["function"]["name"] == "report" for call in calls):
            return END
        return [Send("tool", call) for call in calls]

    graph = StateGraph(State)
    graph.add_node("model", model)
    graph.add_node("tool", tool)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", route, ["tool", END])
    graph.add_edge("tool", "model")
    opening = [
        {"role": "system", "content": INSTRUCTIONS},
        {"role": "user", "content": question.text},
    ]
    final = await graph.compile().ainvoke({"messages": opening})
    report = final["messages"][-1]["tool_calls"][0]["function"]["arguments"]
    return answer_of(Draft.model_validate_json(report))


APP = framework_app("langgraph", investigate)
