"""What an engine adds: the meters against real servers, the sums against figures known by hand."""

from __future__ import annotations

import os
from pathlib import Path

import psycopg
import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client

from comparison.actions import RETRY, billed
from comparison.evidence import Case, Load
from comparison.measures import measure, pool
from comparison.measures.overhead import HEARTBEAT, covered
from comparison.meters import ACTION, LOG, ROWS, WRITES, meter_of, samples
from hand_rolled.server import embedded
from temporal_version.server import DevServer, find_executable

from .planted import Planted


async def test_postgresql_counts_the_transactions_that_wrote_and_no_others(tmp_path: Path) -> None:
    async with (
        embedded(tmp_path) as env,
        await psycopg.AsyncConnection.connect(env["DATABASE_URL"], autocommit=True) as connection,
    ):
        await connection.execute("CREATE TABLE noted (n int)")
        meter = meter_of("hand_rolled", env)
        async with meter.during("twin"):
            for n in range(5):
                await connection.execute("INSERT INTO noted VALUES (%s), (%s)", (n, n))
                await connection.execute("SELECT count(*) FROM noted")
        async with meter.during("whole"):
            await connection.execute("SELECT pg_stat_force_next_flush()")
    [twin, whole] = meter.loads
    assert twin.counts[WRITES] == 5, "reading takes no transaction number"
    assert twin.counts[LOG] > 10 * 24, "ten rows, each with its header"
    assert whole.counts.get(WRITES, 0) == 0
    assert whole.counts[ROWS + "noted"] >= 10, "the statistics arrive late, but they arrive"


async def test_what_was_counted_before_a_crash_is_not_lost_with_it(tmp_path: Path) -> None:
    server = DevServer(tmp_path, executable=find_executable(os.environ), knobs={})
    await server.start()
    try:
        meter = meter_of("temporal", {"TEMPORAL_DEV_SERVER_METRICS": server.metrics_url})
        async with meter.during("whole"):
            await start(server, "before-0", "before-1", "before-2")
            async with meter.during("twin"):
                await start(server, "in-between")
            await meter.mark()
            await server.kill()
            await server.start()
            await meter.mark()
            await start(server, "after")
    finally:
        await server.stop()
    [twin, whole] = meter.loads
    assert twin.counts[ACTION + "grpc_StartWorkflowExecution"] == 1
    assert whole.counts[ACTION + "grpc_StartWorkflowExecution"] == 5


async def start(server: DevServer, *names: str) -> None:
    client = await Client.connect(server.address)
    for name in names:
        await client.start_workflow("nobody's", id=name, task_queue="none")


async def test_a_temporal_server_counts_its_actions(tmp_path: Path) -> None:
    server = DevServer(tmp_path, executable=find_executable(os.environ), knobs={})
    await server.start()
    try:
        client = await Client.connect(server.address)
        meter = meter_of("temporal", {"TEMPORAL_DEV_SERVER_METRICS": server.metrics_url})
        async with meter.during("twin"):
            for n in range(3):
                await client.start_workflow("nobody's", id=f"run-{n}", task_queue="none")
            await client.get_workflow_handle("run-0").signal("hello")
            await client.get_workflow_handle("run-0").describe()
    finally:
        await server.stop()
    [load] = meter.loads
    actions = {name: n for name, n in load.counts.items() if name.startswith(ACTION)}
    assert actions == {
        ACTION + "grpc_StartWorkflowExecution": 3,
        ACTION + "grpc_SignalWorkflowExecution": 1,
    }, "looking at a run is not billed"
    assert load.counts[WRITES] >= 4


async def test_a_server_that_publishes_nothing_is_not_said_to_do_nothing() -> None:
    meter = meter_of("temporal", {"TEMPORAL_ADDRESS": "somewhere.else:7233"})
    async with meter.during("twin"):
        pass
    assert meter.loads[0].counts == {}


def test_only_the_writes_of_the_runs_own_namespace_are_counted() -> None:
    found = samples(
        'action{action_type="grpc_X",namespace="temporal_system",operation="X"} 2\n'
        'persistence_requests{namespace="default",operation="UpdateWorkflowExecution"} 7\n'
        'persistence_requests{namespace="default",operation="GetWorkflowExecution"} 5\n'
        'persistence_requests{namespace="default",operation="CreateTaskQueue"} 4\n'
        'persistence_requests{namespace="system",operation="UpdateShard"} 3\n'
        'visibility_persistence_requests{operation="RecordWorkflowExecutionStarted"} 1\n'
        'persistence_latency_bucket{namespace="default",operation="CreateTasks",le="1"} 9\n'
    )
    assert found[WRITES] == 8
    assert not any(name.startswith(ACTION) for name in found)


def history(*kinds: EventType.ValueType) -> list[HistoryEvent]:
    return [HistoryEvent(event_type=kind) for kind in kinds]


def test_a_history_is_billed_by_temporals_own_list() -> None:
    events = history(
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
        EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED,
        EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
        EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
        EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED,
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED,
    )
    for attempt in (1, 3):
        started = HistoryEvent(event_type=EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED)
        started.activity_task_started_event_attributes.attempt = attempt
        events.append(started)
    assert billed(events) == {
        "start workflow": 1,
        "schedule activity": 2,
        "start child workflow": 2,
        RETRY: 2,
    }


def test_calls_that_overlap_are_covered_once() -> None:
    assert covered([(0, 10), (5, 15), (20, 30), (22, 24)]) == 25
    assert covered([]) == 0


@pytest.fixture
def case() -> Case:
    """The honest campaign, with counters: its twin has two steps of 0.1 s, and ends at 5 s."""
    case = Planted().case("temporal+tuned")
    counts = {WRITES: 20.0, HEARTBEAT: 6.0, ACTION + "grpc_StartWorkflowExecution": 1.0}
    loads = (
        Load(window="twin", seconds=5.0, counts=counts),
        Load(window="whole", seconds=24.0, counts={WRITES: 100.0, ROWS + "runs": 80.0}),
    )
    actions = {"twin-0": {"start workflow": 1, "schedule activity": 2}, "run-0": {RETRY: 1}}
    evidence = case.evidence.model_copy(update={"loads": loads, "actions": actions})
    return case.model_copy(update={"evidence": evidence})


def test_overhead_is_by_run_and_by_step(case: Case) -> None:
    found = measure(case).overhead
    assert found.twin.each(WRITES) == (20.0, 10.0)
    assert (found.twin.billable, found.twin.heartbeats, found.twin.history_actions) == (7.0, 6.0, 3)
    assert found.whole.each(WRITES) == (25.0, 100 / 7), "the cancelled run recorded one step only"
    assert found.whole.rows_written == (20.0, 80 / 7)
    assert found.twin.each(LOG) is None, "Temporal's store has no such counter"


def test_time_beside_the_calls_is_the_runs_time_without_its_calls(case: Case) -> None:
    [per_step] = measure(case).overhead.seconds_per_step
    assert per_step == pytest.approx((5.0 - 0.2) / 2)


def test_overhead_of_several_campaigns_is_over_all_their_runs(case: Case) -> None:
    both = pool([measure(case), measure(case)]).overhead
    assert both.twin.runs == 2
    assert both.twin.each(WRITES) == (20.0, 10.0)
    assert both.twin.billable == 7.0
    assert len(both.seconds_per_step) == 2
