"""The agent beside a model that misbehaves: an honest report, or a reason why there is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from investigation.steps import Report
from tests.investigation.conftest import driver, question
from tests.investigation.misbehaving_vendor import Vendor, call, completion, status
from two_workers import StepFailed

GOOD = {"file": "api.log", "line": 121, "quote": "disk is full"}


FALSE = {"file": "api.log", "line": 1, "quote": "disk is full"}


def report_call(*findings: tuple[str, list[dict[str, Any]]]) -> dict[str, Any]:
    return call(
        "report",
        {
            "answer": "The disk.",
            "confidence": "high",
            "findings": [
                {"title": title, "detail": "d", "citations": cited} for title, cited in findings
            ],
        },
    )


async def test_a_false_citation_is_dropped(misbehaving: Vendor, corpus: Path) -> None:
    findings = (("true", [GOOD, FALSE]), ("false", [FALSE]), ("bare", []))
    misbehaving.queue(completion(tool_calls=[report_call(*findings)]))
    report: Report = await driver(model_base_url=misbehaving.base_url).run(question(corpus))
    assert [finding.title for finding in report.findings] == ["true"]
    assert [citation.line for citation in report.findings[0].citations] == [121]
    assert report.unsupported == ("false", "bare")


@pytest.mark.parametrize(
    ("first_reply", "told"),
    [
        ({"tool_calls": [call("search", "{not json")]}, "not valid JSON"),
        ({"tool_calls": [call("search", "[1]")]}, "must be a JSON object"),
        ({"tool_calls": [call("search", '{"pattern": NaN}')]}, "not valid JSON"),
        ({"tool_calls": [call("search", '{"shapes": 1e999}')]}, "not valid JSON"),
        ({"tool_calls": [call("search", '{"pattern": "\\ud800"}')]}, "not valid JSON"),
        ({"tool_calls": [call("search", '{"a":' * 300 + "1" + "}" * 300)]}, "error: "),
        ({"tool_calls": [call("search", "[" * 1_500)]}, "not valid JSON"),
        ({"tool_calls": [call("search", {"pattern": "x" * 3_000})]}, "longer than 2000"),
        ({"tool_calls": [call("drop_tables", {})]}, "there is no tool 'drop_tables'"),
        ({"tool_calls": [call("report", "{}")]}, "the report is not valid: answer"),
        ({"tool_calls": [call("report", "x" * 50_000)]}, "50000 characters long"),
        ({"content": "Let me think."}, "Use a tool"),
        ({"content": None}, "Use a tool"),
    ],
)
async def test_a_malformed_reply_is_explained_to_the_model(
    misbehaving: Vendor, corpus: Path, first_reply: dict[str, Any], told: str
) -> None:
    misbehaving.queue(
        completion(**first_reply), completion(tool_calls=[report_call(("true", [GOOD]))])
    )
    report: Report = await driver(model_base_url=misbehaving.base_url).run(question(corpus))
    assert report.answer == "The disk."
    second_request = misbehaving.requests[1][0]
    assert told in json.dumps(second_request["messages"])
    assert len(json.dumps(second_request)) < 20_000


async def test_no_zero_byte_gets_into_a_record(misbehaving: Vendor, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"2026-01-05 10:00:00 fine\n" * 1_000 + b"ERROR a\0b\n")
    claim = {"file": "a.log", "line": 1_001, "quote": "ERROR"}
    draft = {
        "answer": "a\0b",
        "confidence": "low",
        "findings": [{"title": "t\0", "detail": "d\0", "citations": [claim]}],
        "next_steps": ["n\0"],
    }
    misbehaving.queue(
        completion(content="\0", tool_calls=[call("search", {"pattern": "ERROR"}, "i\0")]),
        completion(tool_calls=[call("report", draft)]),
    )
    it = driver(model_base_url=misbehaving.base_url)
    report: Report = await it.run(question(tmp_path))
    assert report.findings[0].citations[0].text == "ERROR a\ufffdb"
    assert not [text for text in strings(it.recorded) if "\0" in text]


def strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for item in value.items() for text in strings(item)]
    if isinstance(value, list | tuple):
        return [text for item in value for text in strings(item)]
    return [value] if isinstance(value, str) else []


async def test_too_many_tool_calls_at_once_are_refused_one_by_one(
    misbehaving: Vendor, corpus: Path
) -> None:
    many = [call("list_files", {}, f"c{n}") for n in range(12)]
    misbehaving.queue(
        completion(tool_calls=many), completion(tool_calls=[report_call(("true", [GOOD]))])
    )
    it = driver(model_base_url=misbehaving.base_url)
    await it.run(question(corpus))
    assert len(it.steps[1]) == 8
    results = [m["content"] for m in misbehaving.requests[1][0]["messages"] if m["role"] == "tool"]
    assert ["at most 8" in result for result in results] == [False] * 8 + [True] * 4


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        (completion(refusal="no"), "the model refused: no"),
        (completion(content="x", finish="content_filter"), "the model filtered"),
    ],
)
async def test_a_refusal_ends_in_an_inconclusive_report(
    misbehaving: Vendor, corpus: Path, behaviour: Any, reason: str
) -> None:
    misbehaving.queue(behaviour)
    report: Report = await driver(model_base_url=misbehaving.base_url).run(question(corpus))
    assert report.confidence == "none"
    assert report.inconclusive is not None
    assert report.inconclusive.startswith(reason)


async def test_a_conversation_that_is_too_long_is_halved_and_asked_again(
    misbehaving: Vendor, corpus: Path
) -> None:
    too_long = status(400, {"message": "long", "code": "context_length_exceeded"})
    look = call("read", {"file": "api.log", "line": 60, "before": 40, "after": 40})
    misbehaving.queue(*[completion(tool_calls=[look])] * 3, too_long, too_long)
    it = driver(model_base_url=misbehaving.base_url)
    await it.run(question(corpus))
    _, _, _, full, halved, quartered, *_ = [
        len(json.dumps(body["messages"])) for body, _ in misbehaving.requests
    ]
    assert full > halved > quartered


async def test_a_context_that_is_always_too_long_ends_the_run(
    misbehaving: Vendor, corpus: Path
) -> None:
    too_long = status(400, {"message": "long", "code": "context_length_exceeded"})
    misbehaving.queue(*[too_long] * 50)
    it = driver(model_base_url=misbehaving.base_url)
    report: Report = await it.run(question(corpus, max_model_calls=50))
    assert report.inconclusive is not None
    assert len(misbehaving.requests) < 10


async def test_a_model_that_never_reports_is_stopped(misbehaving: Vendor, corpus: Path) -> None:
    misbehaving.queue(*[completion(content="Hm.")] * 3)
    it = driver(model_base_url=misbehaving.base_url)
    report: Report = await it.run(question(corpus, max_model_calls=3))
    assert report.inconclusive == "the model handed in no report in its last call"
    assert report.model_calls == 3
    last = misbehaving.requests[-1][0]
    assert last["tool_choice"]["function"]["name"] == "report"
    assert [tool["function"]["name"] for tool in last["tools"]] == ["report"]


async def test_a_model_that_stays_down_fails_the_run_with_its_reason(corpus: Path) -> None:
    with pytest.raises(StepFailed, match=r"cannot reach http://127.0.0.1:9/v1"):
        await driver(model_base_url="http://127.0.0.1:9/v1").run(question(corpus))
