"""The scripted model: a pure function of its request, served over the vendors' API."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import httpx
import pytest
from openai import AsyncOpenAI

from investigation.model_server import serve_scripted_model
from investigation.prompts import chat_request
from investigation.scripted.signs import CHANGES, SIGNS, TROUBLE, sign_of
from investigation.scripted.topics import TOPICS, words_of
from investigation.scripted_model import respond
from investigation.steps import AskModel, ToolCall, Turn
from investigation.tools import DEFAULT_CORPUS, run_tool

QUESTION = "why do checkouts fail?"


def request(*turns: Turn, must_report: bool = False) -> dict:
    step = AskModel(question=QUESTION, turns=turns, must_report=must_report)
    return chat_request(step, model="scripted", max_output_tokens=4_000)


def turn_of(response: dict, corpus: str = "") -> Turn:
    """What the agent would make of a response."""
    message = response["choices"][0]["message"]
    calls = [ToolCall(id=call["id"], **call["function"]) for call in message.get("tool_calls", ())]
    results = [run_tool(corpus, call.name, json.loads(call.arguments)).text for call in calls]
    return Turn(text=message["content"], calls=tuple(calls), results=tuple(results))


def test_the_same_request_gives_the_same_response_and_stays_untouched() -> None:
    asked = request(turn_of(respond(request())))
    before = copy.deepcopy(asked)
    assert respond(asked) == respond(copy.deepcopy(asked))
    assert asked == before


def test_it_goes_round_by_round_to_a_report() -> None:
    turns: list[Turn] = []
    tools = []
    for _ in range(5):
        response = respond(request(*turns))
        names = [
            call["function"]["name"] for call in response["choices"][0]["message"]["tool_calls"]
        ]
        tools.append(sorted(set(names)))
        if names == ["report"]:
            break
        turns.append(turn_of(response))
    assert tools == [
        ["list_files"],
        ["search"],
        ["histogram", "search"],
        ["read"],
        ["report"],
    ]


def test_it_cites_only_lines_that_it_was_shown() -> None:
    turns: list[Turn] = []
    while True:
        response = respond(request(*turns))
        (call, *_) = response["choices"][0]["message"]["tool_calls"]
        if call["function"]["name"] == "report":
            break
        turns.append(turn_of(response))
    shown = "\n".join(result for turn in turns for result in turn.results)
    draft = json.loads(call["function"]["arguments"])
    for finding in draft["findings"]:
        for citation in finding["citations"]:
            assert json.dumps(citation["quote"], ensure_ascii=False)[1:-1] in shown


def test_it_reports_at_once_when_it_must() -> None:
    for turns in ((), (turn_of(respond(request())),)):
        message = respond(request(*turns, must_report=True))["choices"][0]["message"]
        assert [call["function"]["name"] for call in message["tool_calls"]] == ["report"]


def test_it_copes_with_results_that_were_errors_or_shortened() -> None:
    turns: list[Turn] = []
    for _ in range(6):
        response = respond(request(*(turn.shortened(20) for turn in turns)))
        (call, *_) = response["choices"][0]["message"]["tool_calls"]
        if call["function"]["name"] == "report":
            assert "do not answer" in json.loads(call["function"]["arguments"])["answer"]
            return
        turns.append(turn_of(response))
    pytest.fail("it never came to an end")


def test_tokens_grow_with_the_text() -> None:
    short = respond(request())["usage"]
    long = respond(request(turn_of(respond(request()))))["usage"]
    assert 0 < short["prompt_tokens"] < long["prompt_tokens"]
    assert short["total_tokens"] == short["prompt_tokens"] + short["completion_tokens"]


def test_the_patterns_of_signs_capture_nothing() -> None:
    """They are put into larger patterns whose first group counts."""
    import re

    for pattern in (TROUBLE, CHANGES, *(sign.pattern for sign in SIGNS)):
        assert re.compile(pattern).groups == 0
    for topic in TOPICS:
        for _, entity in topic.entities:
            assert re.compile(entity).groups == 1


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("WARN pool orders-db exhausted: 4 of 4 in use", "exhausted connection pool"),
        ("Failed password for root from 10.0.0.1", "failed login"),
        ("Accepted password for fztu from 10.0.0.1", "successful login"),
        ("java.net.NoRouteToHostException: No Route to Host", "no route to host"),
        ("Connection broken for id 1, my id = 2", "connection cut"),
        ("config changed: pool.max 40 -> 4", "configuration change"),
        ("Instance spawned successfully.", "success"),
        ('GET /x HTTP/1.1" 503 312', "server error"),
        ("Established session 0x1 for client", None),
    ],
)
def test_signs_explain_lines(line: str, name: str | None) -> None:
    sign = sign_of(line)
    assert (sign.name if sign else None) == name


def test_words_are_what_a_question_names() -> None:
    assert words_of("Why do the quorum connections break?") == {
        "quorum": "quorum",
        "connect": "connections",
        "break|broke": "break",
    }
    assert words_of("what happened?") == {}
    assert words_of("") == {}


async def test_it_is_served_over_the_vendors_api() -> None:
    async with serve_scripted_model() as base_url:
        client = AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0)
        answer = await client.chat.completions.create(**request())
        assert answer.choices[0].message.tool_calls[0].function.name == "list_files"
        assert answer.usage.total_tokens > 0
        await client.close()
        async with httpx.AsyncClient() as http:
            for body in (b"{", b"[]", b"{}", b'{"messages": 3}', b'{"messages": [{}]}'):
                refused = await http.post(f"{base_url}/chat/completions", content=body)
                assert refused.status_code == 400
                assert "not a chat completion request" in refused.json()["error"]["message"]
    with pytest.raises(httpx.ConnectError):
        async with httpx.AsyncClient() as http:
            await http.get(base_url)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("why do checkouts fail?", "Most likely because all connections of a pool were in use"),
        ("why does the gateway answer 503?", "Most likely because all connections of a pool"),
        ("when did checkouts fail?", "between 2025-11-18 02:36:30 and 2025-11-18 02:54:17"),
        ("how many payments were reversed?", "payments.log has 89 lines"),
        ("which orders were lost?", "262 orders are named"),
        ("what changed tonight?", "3 lines of different kinds speak of changes"),
        ("did the backup fail?", "Yes, as far as the logs go: host.log has 1 line"),
        ("is someone breaking in?", "no line shows that anyone got in"),
        ("why is kafka lagging?", "The logs do not answer this: no line or file mentions “kafka”"),
        ("what happened?", "checkout.log has 263 lines"),
    ],
)
def test_the_answer_fits_the_question(question: str, expected: str) -> None:
    assert expected in answer_to(question)["answer"]


def test_counts_are_true_or_said_to_be_a_lower_bound(tmp_path: Path) -> None:
    """Many shapes: a search shows only the most frequent, and their sum is not the whole."""
    names = [f"{a}{b}" for a in "abcdefgh" for b in "abcdefgh"]
    lines = [
        f"Dec 10 06:55:46 host sshd[1]: Failed password for {name} from 10.0.0.1" for name in names
    ]
    lines += [f"Dec 10 06:55:47 host sshd[1]: Invalid user {name} from 10.0.0.1" for name in names]
    (tmp_path / "auth.log").write_text("\n".join(lines) + "\n")
    report = answer_to("is someone breaking in?", str(tmp_path))
    assert "auth.log has 64 lines of “failed login”" in report["answer"]
    titles = [finding["title"] for finding in report["findings"]]
    assert titles[0] == "Failed login: 64 lines in auth.log"
    others = [title for title in titles if "unknown user name" in title]
    assert others == [] or others[0].startswith("Also seen: unknown user name, at least")

    incident = answer_to("why do checkouts fail?")
    logins = (DEFAULT_CORPUS / "host.log").read_text().count("Failed password")
    assert any(
        finding["title"].endswith(f"failed login, {logins} lines in host.log")
        for finding in incident["findings"]
    )


def answer_to(question: str, corpus: str = "") -> dict:
    """Let it investigate a corpus; the report that it hands in."""
    turns: list[Turn] = []
    while True:
        step = AskModel(question=question, turns=tuple(turns))
        response = respond(chat_request(step, model="scripted", max_output_tokens=4_000))
        (call, *_) = response["choices"][0]["message"]["tool_calls"]
        if call["function"]["name"] == "report":
            return json.loads(call["function"]["arguments"])
        turns.append(turn_of(response, corpus))
