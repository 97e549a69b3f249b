"""A worker process's part: poll, run workflows and activities, drain on stop.

One SDK worker for each kind of app, on the kind's own queue, so that a worker is never handed a
run whose code it does not have; and one on the gate's queue, which costs a few idle polls.

The SDK's `Worker` has no signal handler: a SIGTERM that nobody turns into `shutdown()` is a kill.
The caller sets `stop` instead; then this worker polls no more, gives its effects `grace` seconds,
and hands the rest over with their newest checkpoint (`activities.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

from temporalio import activity
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Worker, WorkerDeploymentConfig
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions
from temporalio.workflow import SandboxImportNotificationPolicy

from temporal_version.activities import activities
from temporal_version.client import connect_client
from temporal_version.gate import PermitGate
from temporal_version.messages import CLOSED_OWNERS
from temporal_version.preload import Preload
from temporal_version.registry import checked, passthrough_modules, register
from temporal_version.settings import Settings
from temporal_version.workflow import AgentRun
from two_workers.apps import App


class TemporalWorker:
    """Implements `two_workers.Worker`."""

    def __init__(self, settings: Settings, apps: Sequence[App], *, worker_id: str) -> None:
        self._settings = settings
        self._apps = tuple(apps)
        self._worker_id = worker_id
        for app in self._apps:
            register(app, settings)

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set, drain, return. Raises `EngineUnavailable` at the start."""
        client = await connect_client(self._settings, identity=self._worker_id)
        async with AsyncExitStack() as resources:
            workers = [self._gate_worker(client)]
            for app in self._apps:
                opened = await resources.enter_async_context(app.resources())
                with checked(app):
                    workers.append(self._app_worker(client, app, opened))
            await _run_until(stop, workers)

    def _app_worker(self, client: Client, app: App, resources: Any) -> Worker:
        settings = self._settings
        effects = activities(app, settings, worker_id=self._worker_id, resources=resources)
        return Worker(
            client,
            task_queue=settings.queue(app.kind),
            workflows=[AgentRun, Preload],
            activities=effects,
            workflow_runner=sandbox([app]),
            max_concurrent_activities=settings.concurrency,
            max_task_queue_activities_per_second=settings.queue_rate,
            graceful_shutdown_timeout=timedelta(seconds=settings.grace),
            sticky_queue_schedule_to_start_timeout=timedelta(seconds=settings.sticky_timeout),
            disable_eager_activity_execution=not settings.eager_activities,
            # The SDK sends at most every 0.8 of the heartbeat timeout, or this, if it is shorter.
            deployment_config=_deployment(settings),
            max_heartbeat_throttle_interval=timedelta(seconds=settings.heartbeat_throttle or 60),
        )

    def _gate_worker(self, client: Client) -> Worker:
        return Worker(
            client,
            task_queue=self._settings.gate,
            workflows=[PermitGate],
            activities=[_closed_owners(client)],
            workflow_runner=sandbox([]),
            sticky_queue_schedule_to_start_timeout=timedelta(seconds=1),
        )


def sandbox(apps: Sequence[App]) -> SandboxedWorkflowRunner:
    """The sandbox in which agents run: their modules inside, the driver and libraries outside."""
    restrictions = SandboxRestrictions.default.with_passthrough_modules(*passthrough_modules(apps))
    return SandboxedWorkflowRunner(
        # An agent is imported when its run begins, on purpose: no warning about that.
        restrictions.with_import_notification_policy(SandboxImportNotificationPolicy.SILENT)
    )


def _deployment(settings: Settings) -> WorkerDeploymentConfig | None:
    """Worker Versioning: a run stays with the build that began it, so nothing has to be patched."""
    if settings.deployment is None:
        return None
    name, _, build = settings.deployment.rpartition(":")
    return WorkerDeploymentConfig(
        version=WorkerDeploymentVersion(deployment_name=name, build_id=build),
        use_worker_versioning=True,
        default_versioning_behavior=VersioningBehavior.PINNED,
    )


async def _run_until(stop: asyncio.Event, workers: Sequence[Worker]) -> None:
    """Run the workers until `stop`, or until one of them fails for good; then shut all down."""
    running = [asyncio.create_task(worker.run()) for worker in workers]
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait([stopping, *running], return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        unfinished = [w for w, task in zip(workers, running, strict=True) if not task.done()]
        await asyncio.gather(*(worker.shutdown() for worker in unfinished))
        await asyncio.gather(*running)


def _closed_owners(client: Client) -> Any:
    @activity.defn(name=CLOSED_OWNERS)
    async def closed_owners(owners: list[str]) -> list[str]:
        """Which of these runs are closed. Asked without a run id: continue-as-new is followed."""
        closed = []
        for owner in owners:
            activity.heartbeat()
            try:
                status = (await client.get_workflow_handle(owner).describe()).status
            except RPCError as error:
                if error.status is not RPCStatusCode.NOT_FOUND:
                    raise
                closed.append(owner)
            else:
                if status not in (WorkflowExecutionStatus.RUNNING, None):
                    closed.append(owner)
        return closed

    return closed_owners
