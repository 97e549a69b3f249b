"""What becomes of each way in which an endpoint can misbehave, over real HTTP."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from email.utils import formatdate
from typing import Any

import pytest

from investigation.identity import StaleFence
from investigation.model import ModelClient, ModelUnavailable, retry_after, worst_case
from investigation.settings import Settings
from investigation.steps import AskModel, ModelReply
from tests.investigation.memory_engine import make_call
from tests.investigation.misbehaving_vendor import (
    Behaviour,
    Vendor,
    call,
    completion,
    hang,
    raw,
    status,
)
from two_workers import PermanentFailure, RetryLater

ASK = AskModel(question="why?", turns=())
KEY = "sk-secret-0123456789"


@pytest.fixture
async def client(misbehaving: Vendor) -> AsyncIterator[ModelClient]:
    settings = Settings(
        model_api_key=KEY, model_name="vendor-1", model_timeout=5, identify_calls=True
    )
    it = ModelClient(settings, misbehaving.base_url)
    yield it
    await it.close()


async def ask(client: ModelClient) -> ModelReply:
    return await client.ask(ASK, make_call(None, key="run-1/2.0", attempt=3))


async def test_an_answer_brings_tokens_and_price(misbehaving: Vendor, client: ModelClient) -> None:
    misbehaving.queue(completion(content="hm", tool_calls=[call("list_files", {})]))
    reply = await ask(client)
    assert reply.stop == "answered"
    assert reply.calls[0].name == "list_files"
    assert (reply.tokens_in, reply.tokens_out) == (100, 10)
    assert reply.cost == 100 * 2 + 10 * 8
    assert reply.cost <= worst_case(Settings(), ASK)


async def test_a_call_says_whose_it_is(misbehaving: Vendor, client: ModelClient) -> None:
    await ask(client)
    body, headers = misbehaving.requests[0]
    assert headers["authorization"] == f"Bearer {KEY}"
    assert {
        name: headers[name] for name in headers if name.startswith("x-") and "stain" not in name
    } == {
        "x-run": "run-1",
        "x-key": "run-1/2.0",
        "x-fence": "18",
        "x-attempt": "3",
        "x-worker": "worker-7",
        "x-engine": "memory",
    }
    assert body["model"] == "vendor-1"
    assert [message["role"] for message in body["messages"]] == ["system", "user"]


async def test_calls_stay_anonymous_unless_asked_to_identify(misbehaving: Vendor) -> None:
    anonymous = ModelClient(Settings(), misbehaving.base_url)
    await ask(anonymous)
    await anonymous.close()
    assert "x-run" not in misbehaving.requests[0][1]


async def test_an_older_server_is_told_the_limit_by_its_own_name(misbehaving: Vendor) -> None:
    older = ModelClient(Settings(max_tokens_name="max_tokens"), misbehaving.base_url)
    await ask(older)
    await older.close()
    body = misbehaving.requests[0][0]
    assert body["max_tokens"] == Settings().max_output_tokens
    assert "max_completion_tokens" not in body


@pytest.mark.parametrize(
    ("behaviour", "stop"),
    [
        (completion(refusal="I would rather not"), "refused"),
        (completion(content="", finish="content_filter"), "filtered"),
        (completion(content="and then", finish="length"), "truncated"),
        (status(400, {"message": "blocked", "code": "content_filter"}), "filtered"),
        (status(400, {"message": "too long", "code": "context_length_exceeded"}), "overflow"),
        (status(400, {"message": "maximum context length is 8192 tokens"}), "overflow"),
        (status(413, {"message": "prompt is too long"}), "overflow"),
    ],
)
async def test_what_the_agent_must_deal_with_is_a_reply(
    misbehaving: Vendor, client: ModelClient, behaviour: Behaviour, stop: str
) -> None:
    misbehaving.queue(behaviour)
    assert (await ask(client)).stop == stop


@pytest.mark.parametrize(
    ("message", "arguments"),
    [
        ({"tool_calls": [call("search", "{not json")]}, ["{not json"]),
        ({"tool_calls": [call("search", "")]}, [""]),
        ({"content": None, "tool_calls": None}, []),
        ({"content": "", "tool_calls": []}, []),
    ],
)
async def test_malformed_tool_calls_are_handed_to_the_agent(
    misbehaving: Vendor, client: ModelClient, message: dict[str, Any], arguments: list[str]
) -> None:
    misbehaving.queue(completion(**message))
    reply = await ask(client)
    assert reply.stop == "answered"
    assert [one.arguments for one in reply.calls] == arguments


async def test_tokens_are_estimated_when_the_vendor_does_not_count(
    misbehaving: Vendor, client: ModelClient
) -> None:
    misbehaving.queue(completion(content="x" * 400, usage=None))
    reply = await ask(client)
    assert reply.tokens_in > 500  # the system prompt and the tools alone
    assert 100 <= reply.tokens_out < 200


async def test_a_huge_reply_is_cut(misbehaving: Vendor, client: ModelClient) -> None:
    many = [call("list_files", {}, f"c{n}") for n in range(1_000)]
    misbehaving.queue(completion(content="x" * 1_000_000, tool_calls=many))
    reply = await ask(client)
    assert len(reply.text) == 4_000
    assert len(reply.calls) == 16


@pytest.mark.parametrize(
    "behaviour",
    [
        raw(b"<html>bad gateway</html>", "text/html"),
        raw(b"{not json"),
        raw(b""),
        raw(b"null"),
        raw(b'{"choices": []}'),
        raw(b'{"choices": [{"message": null}]}'),
        completion(tool_calls=[{"id": "c1", "type": "function", "function": {"arguments": "{}"}}]),
        completion(content="x", usage={"prompt_tokens": -1, "completion_tokens": 0}),
        status(500, {"message": "oops"}),
        status(503),
        status(408, {"message": "slow"}),
        status(409, {"message": "conflict of another kind"}),
    ],
)
async def test_what_may_be_better_next_time_is_left_to_the_engine(
    misbehaving: Vendor, client: ModelClient, behaviour: Behaviour
) -> None:
    misbehaving.queue(behaviour)
    with pytest.raises(ModelUnavailable) as caught:
        await ask(client)
    assert "\n" not in str(caught.value)
    assert len(misbehaving.requests) == 1, "the client must not retry by itself"


async def test_no_answer_in_time_is_left_to_the_engine(misbehaving: Vendor) -> None:
    impatient = ModelClient(Settings(model_timeout=0.2), misbehaving.base_url)
    misbehaving.queue(hang)
    with pytest.raises(ModelUnavailable, match=r"no answer from .* in 0\.2 s"):
        await ask(impatient)
    await impatient.close()


async def test_an_endpoint_that_is_down_is_left_to_the_engine() -> None:
    nobody = ModelClient(Settings(), "http://127.0.0.1:9/v1")
    with pytest.raises(ModelUnavailable, match=r"cannot reach http://127.0.0.1:9/v1"):
        await ask(nobody)
    await nobody.close()


@pytest.mark.parametrize("code", [400, 401, 403, 404, 422])
async def test_what_will_never_work_fails_at_once(
    misbehaving: Vendor, client: ModelClient, code: int
) -> None:
    misbehaving.queue(status(code, {"message": f"bad key {KEY}", "code": "nope"}))
    with pytest.raises(PermanentFailure, match=str(code)) as caught:
        await ask(client)
    assert KEY not in str(caught.value)
    assert "bad key ***" in str(caught.value)


async def test_a_zombie_is_told_to_stop(misbehaving: Vendor, client: ModelClient) -> None:
    misbehaving.queue(status(409, {"type": "stale_fence", "message": "19 was here"}))
    with pytest.raises(StaleFence, match=r"run-1/2.0: fence 18 is older"):
        await ask(client)


@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [({"retry-after": "17"}, 17, 17), ({}, 5, 5), ({"retry-after": "soon"}, 5, 5)],
)
async def test_a_rate_limit_asks_for_patience(
    misbehaving: Vendor, client: ModelClient, headers: dict[str, str], least: float, most: float
) -> None:
    misbehaving.queue(status(429, {"message": "slow down"}, headers))
    with pytest.raises(RetryLater) as caught:
        await ask(client)
    assert least <= caught.value.after <= most


async def test_a_used_up_quota_is_no_rate_limit(misbehaving: Vendor, client: ModelClient) -> None:
    misbehaving.queue(
        status(429, {"message": "pay first", "code": "insufficient_quota"}),
        status(429, {"message": "tomorrow"}, {"retry-after": "86400"}),
    )
    with pytest.raises(PermanentFailure, match="pay first"):
        await ask(client)
    with pytest.raises(PermanentFailure, match="asks to wait 86400 s"):
        await ask(client)


async def test_patience_has_an_end(misbehaving: Vendor, client: ModelClient) -> None:
    misbehaving.queue(status(429, {"message": "slow down"}, {"retry-after": "1"}))
    with pytest.raises(PermanentFailure, match="slow down"):
        await client.ask(ASK, make_call(None, attempt=30))


def test_retry_after_may_be_a_date() -> None:
    now = time.time()
    assert retry_after(formatdate(now + 90, usegmt=True), now) == pytest.approx(90, abs=2)
    assert retry_after(formatdate(now - 90, usegmt=True), now) == 0
    assert retry_after("nan", now) == 5
    assert retry_after("-3", now) == 0
