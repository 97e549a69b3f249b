"""Our layer against the bare SDK: both on a server of their own, with the same timeouts."""

from __future__ import annotations

from pathlib import Path

from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client

from benchmarks.peers.temporal_peer import PEER
from benchmarks.rows.throughput import dev_servers


async def first_events(client: Client) -> dict[str, HistoryEvent]:
    """How one run of each workflow type began."""
    found = {}
    async for run in client.list_workflows():
        if run.workflow_type not in found:
            history = await client.get_workflow_handle(run.id).fetch_history()
            found[run.workflow_type] = history.events[0]
    return found


async def test_both_sides_run_with_the_same_timeouts(tmp_path: Path) -> None:
    async with dev_servers(tmp_path)() as address:
        for side in ("bare", "ours"):
            assert (await PEER.measures[side](address, 1)).count == 1
        began = await first_events(await Client.connect(address))
    timeouts = {
        name: event.workflow_execution_started_event_attributes.workflow_task_timeout.seconds
        for name, event in began.items()
    }
    assert timeouts == {"Bare": 10, "AgentRun": 10}


async def test_each_measurement_has_a_server_without_a_past(tmp_path: Path) -> None:
    arena = dev_servers(tmp_path)
    async with arena() as address:
        await PEER.measures["bare"](address, 1)
        assert await first_events(await Client.connect(address))
    async with arena() as address:
        assert not await first_events(await Client.connect(address))
