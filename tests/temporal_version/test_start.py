"""What a start tells, and what it asks the server for."""

from __future__ import annotations

from typing import Any

from temporalio.client import Client, Interceptor, OutboundInterceptor

from temporal_version.engine import TemporalEngine
from tests.temporal_version.conftest import Bench
from two_workers import RunState


class Asked(Interceptor):
    """Keeps the names of the calls that were made for runs."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:
        return _Noting(next, self.calls)


class _Noting(OutboundInterceptor):
    def __init__(self, next: OutboundInterceptor, calls: list[str]) -> None:
        super().__init__(next)
        self._calls = calls

    async def start_workflow(self, input: Any) -> Any:
        self._calls.append("start")
        return await super().start_workflow(input)

    async def describe_workflow(self, input: Any) -> Any:
        self._calls.append(f"describe {input.id}")
        return await super().describe_workflow(input)


def watched(bench: Bench) -> tuple[TemporalEngine, Asked]:
    asked, client = Asked(), bench.engine.client
    config = {**client.config(), "interceptors": [asked]}
    return TemporalEngine(Client(**config), bench.settings()), asked


async def test_a_start_is_told_without_a_second_look(bench: Bench) -> None:
    engine, asked = watched(bench)
    run = bench.run("a").model_copy(update={"tenant": "acme", "budget": 5})
    started = await engine.start(run)
    assert asked.calls == [f"describe {bench.settings().gate}", "start"]
    assert started.state is RunState.PENDING
    seen = await engine.get(run.run_id)
    assert seen.model_dump(exclude={"native"}) == started.model_dump(exclude={"native"})
    assert started.native.items() <= seen.native.items()


async def test_a_run_is_as_old_in_a_list_as_when_it_was_started(bench: Bench) -> None:
    started = await bench.engine.start(bench.run("a"))
    again = await bench.engine.start(bench.run_again(started.run_id, steps=["a"]))
    assert again.created_at == started.created_at
    async with bench.worker():
        await bench.engine.result(started.run_id, timeout=60)
    await bench.listed(started.run_id)
    [listed] = [v for v in await bench.engine.list_runs() if v.run_id == started.run_id]
    assert listed.created_at == started.created_at
