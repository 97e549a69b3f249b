"""What every request needs: the parts of one service, made once and kept in `service.state`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Request

from investigation.service.access import Access, Caller, Redactor
from investigation.service.admission import Admission
from investigation.service.demo import Demo
from investigation.service.events import Streams
from investigation.service.settings import Settings
from two_workers import App, Engine


@dataclass(frozen=True)
class Parts:
    """One app on one engine, and who may ask how much of it."""

    engine: Engine
    app: App
    settings: Settings
    access: Access
    admission: Admission
    streams: Streams
    redactor: Redactor
    demo: Demo | None


def the_parts(request: Request) -> Parts:
    return cast(Parts, request.app.state.parts)


TheParts = Annotated[Parts, Depends(the_parts)]


async def asking(request: Request, parts: TheParts) -> Caller:
    return await parts.access.caller(request)


Asking = Annotated[Caller, Depends(asking)]
