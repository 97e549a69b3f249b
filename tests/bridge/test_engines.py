"""The bridge on the engines: a takeover in the middle of a fan-out, and Temporal's own replay."""

from __future__ import annotations

from typing import Any

from temporalio.worker import Replayer

from temporal_version.client import connect_client
from temporal_version.engine import TemporalEngine
from temporal_version.payloads import data_converter
from temporal_version.worker import sandbox
from temporal_version.workflow import AgentRun
from tests.app_bench import Bench
from tests.bridge.agents import Ask, fans_out, sleeps_by_the_clock
from two_workers import AgentError, App, Call, Effect, PermanentFailure, RunFailed


async def answer(step: Ask, call: Call) -> str:
    if step.text.startswith("bad"):
        raise PermanentFailure("no")
    return f"<{step.text}>"


def app_of(kind: str, agent: Any) -> App:
    return App(kind=kind, agent=agent, effects={Ask: Effect(answer)})


async def test_an_asyncio_agent_gives_the_same_result_on_either_engine(bench: Bench) -> None:
    app = app_of("bridge", fans_out)
    async with bench.worker(app):
        run_id = await bench.start(app, {"names": ["a", "b", "c"]})
        result = await bench.engine.result(run_id, timeout=60)
        steps = await bench.engine.steps(run_id)
    if isinstance(bench.engine, TemporalEngine):
        await replayed(bench, app, run_id)

    assert result == [
        *("<a>", "<b>", "<c>"),
        *("<cleanup a>", "<cleanup b>", "<cleanup c>"),
        "<after the group>",
    ]
    assert [record.key.rpartition("/")[2] for record in steps][:4] == ["0.0", "0.1", "0.2", "1.0"]


async def replayed(bench: Bench, app: App, run_id: str) -> None:
    """Replay the run's history in the sandbox. Raises if the agent asks for other steps now."""
    settings = bench.plugin.settings(bench.env)
    client = await connect_client(settings)
    replayer = Replayer(
        workflows=[AgentRun],
        workflow_runner=sandbox([app]),
        data_converter=data_converter(settings),
    )
    history = await client.get_workflow_handle(run_id).fetch_history()
    assert len(history.events) > 30
    await replayer.replay_workflow(history)


async def test_a_timer_fails_the_run_and_says_what_to_do(bench: Bench) -> None:
    app = app_of("bridge-timer", sleeps_by_the_clock)
    async with bench.worker(app):
        run_id = await bench.start(app, {})
        try:
            result = await bench.engine.result(run_id, timeout=60)
        except RunFailed as failed:
            result = failed.failure

    assert AgentError.__name__ in str(result)
    assert "make it a step, such as Sleep" in str(result)
