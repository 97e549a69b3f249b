"""The demo's buttons over HTTP: start, kill, pause and resume a worker of this demo."""

from __future__ import annotations

import signal
from typing import Annotated

from fastapi import APIRouter, Depends

from investigation.service.demo import Demo, WorkerView
from investigation.service.parts import Asking, TheParts

router = APIRouter(prefix="/api/demo", tags=["demo"])


def the_demo(caller: Asking, parts: TheParts) -> Demo:
    assert parts.demo is not None, "these routes exist only with a demo"
    return parts.demo


TheDemo = Annotated[Demo, Depends(the_demo)]


@router.get("/workers")
async def workers(demo: TheDemo) -> list[WorkerView]:
    """The worker processes that this service started, newest first."""
    return [worker.view() for worker in reversed(demo.workers)]


@router.post("/workers", status_code=201)
async def start_worker(demo: TheDemo) -> WorkerView:
    """Start one more worker."""
    return (await demo.start()).view()


@router.post("/workers/{worker_id}/kill")
async def kill(worker_id: str, demo: TheDemo) -> WorkerView:
    """SIGKILL: the process is gone at once, and its run is an orphan."""
    worker = demo.worker(worker_id)
    worker.send(signal.SIGKILL)
    await worker.process.wait()
    return worker.view()


@router.post("/workers/{worker_id}/pause")
async def pause(worker_id: str, demo: TheDemo) -> WorkerView:
    """SIGSTOP: the process freezes, with its lease and its open connections."""
    worker = demo.worker(worker_id)
    worker.send(signal.SIGSTOP)
    worker.paused = True
    return worker.view()


@router.post("/workers/{worker_id}/resume")
async def resume(worker_id: str, demo: TheDemo) -> WorkerView:
    """SIGCONT: a paused process goes on, perhaps as a zombie. Its writes are refused."""
    worker = demo.worker(worker_id)
    worker.send(signal.SIGCONT)
    worker.paused = False
    return worker.view()
