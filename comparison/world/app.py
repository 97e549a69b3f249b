"""The world's HTTP face: the vendor's API, the tools, the report sink, and a small control API.

POST /v1/chat/completions   POST /tools/{name}   POST /reports      the workers' side
POST /control/holds         GET /control/holds/{id}?wait=SECONDS    arm a hold, await its hit
POST /control/holds/{id}/release            POST /control/release   let go; heal
GET  /control/ledger?after=SEQ&wait=SECONDS                         follow the ledger
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from comparison.ledger import Begin, CallKind, Identity, to_fields
from comparison.world.book import Book
from comparison.world.holds import Hold, Holds, Rule

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Answer:
    """What the world says to one call, as JSON, and what that costs."""

    body: bytes
    tokens_in: int = 0
    tokens_out: int = 0
    micro_usd: int = 0


class Answers(Protocol):
    """Who answers: the scripted model, the tools and the sink of the app under test.

    Each answer is a function of the request's body alone, so equal questions get equal answers,
    on every engine and in every attempt. Raises `ValueError` for a body that no vendor would
    accept; anything else is a fault of the world's own.
    """

    def model(self, body: bytes) -> Answer: ...
    def tool(self, name: str, body: bytes) -> Answer: ...
    def report(self, body: bytes) -> Answer: ...


@dataclass(frozen=True)
class Latency:
    """How long each kind of call takes: uniform between two bounds, in seconds.

    Seeded by the call's place in its run and its input, not by its run's name: the same question
    takes the same time on both engines, in every attempt, and in the fault-free twin.
    """

    seed: int
    model: tuple[float, float] = (0.0, 0.0)
    tool: tuple[float, float] = (0.0, 0.0)

    def of(self, begin: Begin) -> float:
        """Seconds that this call takes."""
        low, high = self.model if begin.kind == "model" else self.tool
        place = begin.identity.key.rpartition("/")[2]
        stream = random.Random(f"{self.seed}:{begin.kind}:{place}:{begin.input_hash}")
        return stream.uniform(low, high)


def build(book: Book, answers: Answers, latency: Latency) -> Starlette:
    """The world as an ASGI app."""
    holds = Holds()
    desk = Desk(book, answers, latency, holds)

    async def chat(request: Request) -> Response:
        return await desk.take(request, "model", "chat")

    async def tool(request: Request) -> Response:
        return await desk.take(request, "tool", request.path_params["name"])

    async def report(request: Request) -> Response:
        return await desk.take(request, "report", "report")

    return Starlette(
        routes=[
            Route("/v1/chat/completions", chat, methods=["POST"]),
            Route("/tools/{name}", tool, methods=["POST"]),
            Route("/reports", report, methods=["POST"]),
            *_control(book, holds),
        ]
    )


@dataclass(frozen=True)
class Desk:
    """Where calls come in: each gets a begin and an end in the book."""

    book: Book
    answers: Answers
    latency: Latency
    holds: Holds

    async def take(self, request: Request, kind: CallKind, name: str) -> Response:
        """The answer to one call, after its latency and whatever holds it."""
        raw = await request.body()
        who = _identity(request)
        if who is None:
            return _problem(400, "identity", "expected the headers X-Run, X-Key, X-Fence, …")
        begin, current = self.book.begin(kind, name, hashlib.sha256(raw).hexdigest()[:16], who)
        if not current:
            self.book.end(begin, "refused", delivered=not await request.is_disconnected())
            return _problem(409, "stale_fence", f"{who.key}: a newer owner than {who.fence} called")
        await self.holds.pass_through("begin", begin)
        half = self.latency.of(begin) / 2
        await asyncio.sleep(half)
        await self.holds.pass_through("during", begin)
        await asyncio.sleep(half)
        try:
            answer = _ask(self.answers, kind, name, raw)
        except Exception as error:  # whatever it is: a call that has begun must have an end
            self.book.end(begin, "failed", delivered=not await request.is_disconnected())
            return _failure(error, who.key)
        await self.holds.pass_through("reply", begin)
        self.book.end(
            begin,
            "answered",
            delivered=not await request.is_disconnected(),
            tokens_in=answer.tokens_in,
            tokens_out=answer.tokens_out,
            micro_usd=answer.micro_usd,
        )
        return Response(answer.body, media_type="application/json")


def _ask(answers: Answers, kind: CallKind, name: str, body: bytes) -> Answer:
    match kind:
        case "model":
            return answers.model(body)
        case "tool":
            return answers.tool(name, body)
        case "report":
            return answers.report(body)


def _failure(error: Exception, key: str) -> Response:
    """What a caller is told: the call was at fault (`ValueError`), or we were."""
    if isinstance(error, ValueError):
        return _problem(400, "invalid_request_error", str(error))
    logger.error("no answer to %s", key, exc_info=error)
    return _problem(500, "server_error", f"{type(error).__name__}: {error}")


def _control(book: Book, holds: Holds) -> list[Route]:
    async def arm(request: Request) -> Response:
        return _hold(holds.arm(Rule.model_validate_json(await request.body())))

    async def look(request: Request) -> Response:
        hold = holds.get(request.path_params["hold"])
        await _within(float(request.query_params.get("wait", "0")), hold.hit.wait)
        return _hold(hold)

    async def release(request: Request) -> Response:
        return _hold(holds.release(request.path_params["hold"]))

    async def release_all(_: Request) -> Response:
        holds.release_all()
        return JSONResponse({})

    async def ledger(request: Request) -> Response:
        query = request.query_params
        lines = await book.after(int(query["after"]), timeout=float(query.get("wait", "0")))
        return Response(f"[{','.join(lines)}]", media_type="application/json")

    return [
        Route("/control/holds", arm, methods=["POST"]),
        Route("/control/holds/{hold:int}", look),
        Route("/control/holds/{hold:int}/release", release, methods=["POST"]),
        Route("/control/release", release_all, methods=["POST"]),
        Route("/control/ledger", ledger),
    ]


def _identity(request: Request) -> Identity | None:
    headers = request.headers
    try:
        return Identity(
            run=headers["x-run"],
            key=headers["x-key"],
            fence=tuple(int(part) for part in headers["x-fence"].split(".")),
            attempt=int(headers["x-attempt"]),
            worker=headers["x-worker"],
            engine=headers["x-engine"],
        )
    except (KeyError, ValueError):
        return None


async def _within(seconds: float, wait: Callable[[], Awaitable[object]]) -> None:
    try:
        async with asyncio.timeout(seconds):
            await wait()
    except TimeoutError:
        pass  # the caller reads the state, which says so


def _hold(hold: Hold) -> Response:
    state = "released" if hold.released.is_set() else "hit" if hold.hit.is_set() else "armed"
    call = None if hold.call is None else to_fields(hold.call)
    return JSONResponse({"id": hold.id, "state": state, "call": call})


def _problem(status: int, code: str, message: str) -> Response:
    """An error in the shape that the OpenAI client understands."""
    error = {"message": message, "type": code, "code": code}
    return JSONResponse({"error": error}, status_code=status)
