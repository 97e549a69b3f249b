"""Every error as `{"detail": ...}`: what was expected and what to do, and never a secret."""

from __future__ import annotations

import logging
import uuid

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import ValidationError

from investigation.service.access import Redactor
from two_workers import BadInput, EngineUnavailable, RunClosed, RunConflict, RunNotFound

logger = logging.getLogger(__name__)

STATUS: dict[type[Exception], int] = {
    RunNotFound: 404,
    RunConflict: 409,
    RunClosed: 409,
    EngineUnavailable: 503,
    BadInput: 400,
}


def handle_errors(service: FastAPI, redactor: Redactor) -> None:
    """Register a handler for every error that a request may end in."""

    async def expected(request: Request, error: Exception) -> JSONResponse:
        status = next(code for kind, code in STATUS.items() if isinstance(error, kind))
        return JSONResponse({"detail": redactor.clean(str(error))}, status_code=status)

    async def invalid(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError | ValidationError)
        return JSONResponse({"detail": faults(error)}, status_code=422)

    async def unexpected(request: Request, error: Exception) -> JSONResponse:
        number = uuid.uuid4().hex[:8]
        logger.error("error %s at %s %s", number, request.method, request.url.path, exc_info=error)
        return JSONResponse(
            {"detail": f"internal error; the service's log has it as {number}"}, status_code=500
        )

    for kind in STATUS:
        service.add_exception_handler(kind, expected)
    service.add_exception_handler(RequestValidationError, invalid)
    service.add_exception_handler(ValidationError, invalid)
    service.add_exception_handler(Exception, unexpected)


def faults(error: RequestValidationError | ValidationError) -> str:
    """What is wrong with the input, in one line, without repeating the input."""
    return "; ".join(
        f"{'.'.join(map(str, fault['loc'])) or 'payload'}: {fault['msg']}"
        for fault in error.errors()
    )
