"""The service put together: routes, errors, limits of a request, and the page."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, Depends, FastAPI
from fastapi.staticfiles import StaticFiles
from starlette.responses import Response
from starlette.types import Scope

from investigation.service import api, demo_api
from investigation.service.access import BEARER, Access, Redactor, refuse_other_sites
from investigation.service.admission import Admission
from investigation.service.demo import Demo
from investigation.service.errors import handle_errors
from investigation.service.events import Streams
from investigation.service.parts import Parts, TheParts
from investigation.service.settings import Settings, tenants_by_key
from two_workers import App, Engine

PAGE = Path(__file__).parent / "page"


class Page(StaticFiles):
    """The page, which may load and be asked nothing but what comes from here."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Content-Security-Policy"] = "default-src 'self'; frame-ancestors 'none'"
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "no-referrer"
        return response


health = APIRouter(tags=["service"])


@health.get("/healthz")
async def healthz(parts: TheParts) -> dict[str, str]:
    """Answers 200 while the engine answers."""
    await parts.engine.limits()
    return {"status": "ok", "engine": parts.engine.name}


def create_service(
    engine: Engine,
    app: App,
    settings: Settings,
    *,
    redactor: Redactor | None = None,
    demo: Demo | None = None,
) -> FastAPI:
    """The ASGI application. `demo` adds the buttons that kill and pause the workers it started."""
    service = FastAPI(
        title=f"Two Workers: {app.kind}",
        description=api.__doc__ or "",
        version=app.version,
        max_body_size=settings.max_request_bytes,
        dependencies=[Depends(refuse_other_sites)],
    )
    parts = Parts(
        engine=engine,
        app=app,
        settings=settings,
        access=Access(tenants_by_key(settings)),
        admission=Admission(engine, settings),
        streams=Streams(settings.max_streams),
        redactor=redactor or Redactor(()),
        demo=demo,
    )
    service.state.parts = parts
    handle_errors(service, parts.redactor)
    service.include_router(health)
    service.include_router(api.router, dependencies=[Depends(BEARER)])
    if demo is not None:
        service.include_router(demo_api.router, dependencies=[Depends(BEARER)])
    service.mount("/", Page(directory=PAGE, html=True), name="page")
    return service
