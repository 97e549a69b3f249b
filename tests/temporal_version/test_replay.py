"""Saved histories replay with today's driver; a changed agent is refused, loudly.

The histories come from `record_histories.py`. No server is needed here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer
from temporalio.workflow import NondeterminismError

from temporal_version.gate import PermitGate
from temporal_version.payloads import data_converter
from temporal_version.registry import register
from temporal_version.settings import read
from temporal_version.worker import sandbox
from temporal_version.workflow import AgentRun
from tests.temporal_version import agents, app
from tests.temporal_version.changed_driver import Patched, Unpatched
from two_workers import App

HISTORIES = Path(__file__).with_name("histories")


async def replay(name: str, app: App, driver: type[AgentRun] = AgentRun) -> None:
    settings = read({"TEMPORAL_VERSION_ARM": "tuned"})
    register(app, settings)
    replayer = Replayer(
        workflows=[driver, PermitGate],
        workflow_runner=sandbox([app]),
        data_converter=data_converter(settings),
    )
    saved = json.loads((HISTORIES / f"{name}.json").read_text())
    started = saved["events"][0]["workflowExecutionStartedEventAttributes"]
    await replayer.replay_workflow(WorkflowHistory.from_json(started["workflowId"], saved))


@pytest.mark.parametrize(
    ("name", "app"),
    [
        ("everything", app.EVERYTHING),
        ("in_sequence", app.APP),
        ("failed_step", app.APP),
        ("cancelled_fan_out", app.PARALLEL),
        ("under_limits", app.PARALLEL),
        ("gate", app.APP),
    ],
)
async def test_a_saved_history_replays(name: str, app: App) -> None:
    await replay(name, app)


@pytest.mark.parametrize("agent", [agents.other_text, agents.other_order, agents.in_parallel])
async def test_a_changed_agent_does_not_replay(agent: Callable[[Any], Any]) -> None:
    """Also when only an argument changed: the fingerprint is in the activity's id."""
    with pytest.raises(NondeterminismError):
        await replay("in_sequence", replace(app.APP, agent=agent))


async def test_a_cancelled_fan_out_replays_in_the_same_order_each_time() -> None:
    """Eight cancellations in one task: their order must not depend on where objects lie.

    A run whose cancellation does not replay is wedged, as in sdk-python#1751.
    """
    for _ in range(20):
        await replay("cancelled_fan_out", app.PARALLEL)


async def test_a_driver_that_is_changed_behind_a_patch_replays_older_runs_and_newer_ones() -> None:
    await replay("in_sequence", app.APP, Patched)
    await replay("after_a_patch", app.APP, Patched)


async def test_without_the_patch_older_runs_do_not_replay() -> None:
    with pytest.raises(NondeterminismError):
        await replay("in_sequence", app.APP, Unpatched)


async def test_rolling_a_patch_back_stops_the_runs_that_took_the_new_way() -> None:
    with pytest.raises(NondeterminismError):
        await replay("after_a_patch", app.APP)


def test_every_saved_history_is_replayed() -> None:
    saved = {path.stem for path in HISTORIES.glob("*.json")}
    assert saved == {
        "everything",
        "in_sequence",
        "failed_step",
        "cancelled_fan_out",
        "under_limits",
        "gate",
        "after_a_patch",
    }
