"""A client of the service in this process, and the reading of its event streams."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from investigation.service.access import Redactor
from investigation.service.application import create_service
from investigation.service.settings import Settings
from tests.contract.probe import Probe, contract_app
from two_workers import App, Engine

ACME = "acme-key-0123456789"
GLOBEX = "globex-key-0123456789"
KEYS = f"acme={ACME},globex={GLOBEX}"


@asynccontextmanager
async def service_client(
    engine: Engine,
    app: App,
    *,
    key: str | None = None,
    secrets: tuple[str, ...] = (),
    **settings: Any,
) -> AsyncIterator[httpx.AsyncClient]:
    """An HTTP client whose requests go straight to the service."""
    service = create_service(engine, app, Settings(**settings), redactor=Redactor(secrets))
    transport = httpx.ASGITransport(service, raise_app_exceptions=False)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with httpx.AsyncClient(
        transport=transport, base_url="http://127.0.0.1:8000", headers=headers, timeout=90
    ) as client:
        yield client


@dataclass
class Event:
    """One server-sent event."""

    event: str = "message"
    id: str | None = None
    data: Any = field(default=None)


async def read_events(lines: AsyncIterator[str]) -> AsyncIterator[Event]:
    """Parse an event stream as a browser does, comments left out."""
    event, dirty = Event(), False
    async for line in lines:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line and dirty:
            yield event
            event, dirty = Event(), False
        elif name == "data":
            event.data, dirty = json.loads(value), True
        elif name == "event":
            event.event, dirty = value, True
        elif name == "id":
            event.id = value


__all__ = ["ACME", "GLOBEX", "KEYS", "Event", "Probe", "contract_app", "read_events"]
