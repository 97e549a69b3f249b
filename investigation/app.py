"""The app, put together. A worker is told `investigation.app:APP`."""

from __future__ import annotations

from investigation.agent import investigate
from investigation.effects import ask_model, call_tool, open_resources, publish_report
from investigation.model import worst_case
from investigation.settings import Settings, load_settings
from investigation.steps import AskModel, CallTool, PublishReport
from two_workers import App, Effect, Retry


def build_app(settings: Settings) -> App:
    """The investigation app with given settings."""
    return App(
        kind="investigation",
        agent=investigate,
        effects={
            AskModel: Effect(
                ask_model,
                timeout=settings.model_timeout + 10,
                retry=Retry(max_attempts=5),
                pool="model",
                worst_case=lambda step: worst_case(settings, step),
                cost=lambda reply: reply.cost,
            ),
            CallTool: Effect(call_tool, timeout=settings.tool_timeout + 10),
            PublishReport: Effect(publish_report, retry=Retry(max_attempts=5)),
        },
        resources=lambda: open_resources(settings),
    )


APP = build_app(load_settings())
