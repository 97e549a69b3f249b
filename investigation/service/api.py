"""The service: one app on one engine, over HTTP.

Every change is safe to repeat: a start by its `Idempotency-Key`, a signal by its `signal_id`,
a cancellation by nature. So a client that got no answer sends the same request again.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any, get_type_hints

from fastapi import APIRouter, Depends, Header, Query, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import TypeAdapter

from investigation.service.access import Caller
from investigation.service.events import follow
from investigation.service.parts import Asking, Parts, TheParts
from investigation.service.requests import (
    AppInfo,
    Approve,
    Cancel,
    Key,
    Result,
    Runs,
    SendSignal,
    StartRun,
    Steps,
)
from two_workers import (
    App,
    Limits,
    Run,
    RunCancelled,
    RunFailed,
    RunNotFound,
    RunState,
    RunView,
    close,
)

OPERATORS_TENANT = "default"
READ = 10.0  # seconds to read what is already there

router = APIRouter(prefix="/api", tags=["runs"])


async def own_run(run_id: str, caller: Asking, parts: TheParts) -> RunView:
    """The run in the path, if the caller may see it. Another tenant's run is not found."""
    view = await parts.engine.get(run_id)
    if view.kind != parts.app.kind or caller.tenant not in (None, view.tenant):
        raise RunNotFound(run_id)
    return shown(view, parts)


OwnRun = Annotated[RunView, Depends(own_run)]


def shown(view: RunView, parts: Parts) -> RunView:
    """A run as it may leave the process: an error of some library may have named a secret."""
    return view.model_copy(update={"failure": view.failure and parts.redactor.clean(view.failure)})


@router.get("/app")
async def about(caller: Asking, parts: TheParts) -> AppInfo:
    """The app, its engine, and the JSON Schema of a payload."""
    return AppInfo(
        kind=parts.app.kind,
        engine=parts.engine.name,
        payload_schema=payload_schema(parts.app),
        tenant=caller.tenant,
        demo=parts.demo is not None,
    )


@router.post("/runs", status_code=202)
async def start(
    request: StartRun,
    response: Response,
    caller: Asking,
    parts: TheParts,
    idempotency_key: Annotated[Key | None, Header()] = None,
) -> RunView:
    """Start a run, durably. With the same `Idempotency-Key` and content it is the same run.

    409 when the key was used with other content, 429 when there is no room, 422 when the agent
    does not take this payload.
    """
    close(parts.app.plan(request.payload))  # not started: this only decodes the payload
    tenant = caller.tenant or OPERATORS_TENANT
    run_id = new_run_id(parts.app.kind, tenant, idempotency_key)
    run = Run(run_id=run_id, kind=parts.app.kind, tenant=tenant, **dict(request))
    async with parts.admission.admitted(run_id, tenant):
        view = await parts.engine.start(run)
    response.headers["Location"] = f"/api/runs/{run_id}"
    return shown(view, parts)


@router.get("/runs")
async def list_runs(
    caller: Asking,
    parts: TheParts,
    state: RunState | None = None,
    tenant: Annotated[str | None, Query(description="For operators.")] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> Runs:
    """Runs, newest first."""
    found = await parts.engine.list_runs(
        state=state, tenant=caller.tenant or tenant, kind=parts.app.kind, limit=limit
    )
    return Runs(runs=[shown(view, parts) for view in found])


@router.get("/runs/{run_id}")
async def get(view: OwnRun) -> RunView:
    """One run: its state, and who owns it until when."""
    return view


@router.get("/runs/{run_id}/steps")
async def steps(view: OwnRun, parts: TheParts) -> Steps:
    """The recorded steps: what a takeover does not execute again."""
    return Steps(steps=list(await parts.engine.steps(view.run_id)))


@router.get("/runs/{run_id}/result")
async def result(
    view: OwnRun,
    response: Response,
    parts: TheParts,
    wait: Annotated[float, Query(ge=0, le=60, description="Seconds.")] = 0,
) -> Result:
    """The result, after waiting up to `wait` seconds for it. 202 while the run goes on."""
    run_id = view.run_id
    try:
        value = await parts.engine.result(run_id, timeout=READ if view.state.is_final else wait)
    except TimeoutError:
        response.status_code = 202
        return Result(run_id=run_id, state=(await parts.engine.get(run_id)).state)
    except RunFailed as error:
        failure = parts.redactor.clean(error.failure)
        return Result(run_id=run_id, state=RunState.FAILED, failure=failure)
    except RunCancelled:
        return Result(run_id=run_id, state=RunState.CANCELLED)
    return Result(run_id=run_id, state=RunState.SUCCEEDED, result=value)


@router.post("/runs/{run_id}/cancel", status_code=202)
async def cancel(view: OwnRun, request: Cancel, parts: TheParts) -> RunView:
    """Request cancellation, durably. An owned run ends at its owner's next safe boundary."""
    return shown(await parts.engine.cancel(view.run_id, reason=request.reason), parts)


@router.post("/runs/{run_id}/signals/{name}", status_code=204)
async def signal(view: OwnRun, name: Key, request: SendSignal, parts: TheParts) -> None:
    """Tell a waiting agent something. 409 when the run has ended."""
    await parts.engine.signal(view.run_id, name, request.payload, signal_id=request.signal_id)


@router.post("/runs/{run_id}/approve", status_code=204)
async def approve(view: OwnRun, request: Approve, parts: TheParts) -> None:
    """A person's decision, as the signal `approve`. 409 when the run has ended."""
    decision = request.model_dump(exclude={"signal_id"})
    await parts.engine.signal(view.run_id, "approve", decision, signal_id=request.signal_id)


def open_stream(caller: Asking, parts: TheParts) -> Iterator[Caller]:
    """Count this request's event stream until it ends. 429 when the tenant has too many."""
    with parts.streams.one(caller.tenant):
        yield caller


@router.get(
    "/runs/{run_id}/events",
    response_class=EventSourceResponse,
    dependencies=[Depends(open_stream)],
)
async def events(view: OwnRun, parts: TheParts) -> AsyncIterator[ServerSentEvent]:
    """Progress until the run ends: `run` when it changed, `step` when recorded, `end`."""
    interval = parts.settings.poll_interval
    async for event in follow(parts.engine, view.run_id, interval=interval):
        yield event


@router.get("/limits")
async def limits(caller: Asking, parts: TheParts) -> Limits:
    """The limits in force."""
    return await parts.engine.limits()


def new_run_id(kind: str, tenant: str, idempotency_key: str | None) -> str:
    """A run id: made from the key if there is one, so that the engine itself finds the repeat."""
    if idempotency_key is None:
        return f"run-{uuid.uuid4().hex[:20]}"
    identity = json.dumps([kind, tenant, idempotency_key])
    return f"run-{hashlib.sha256(identity.encode()).hexdigest()[:20]}"


def payload_schema(app: App) -> dict[str, Any]:
    """JSON Schema of the agent's parameter."""
    hints = get_type_hints(app.agent)
    hint = next((hint for name, hint in hints.items() if name != "return"), Any)
    return TypeAdapter(hint).json_schema()
