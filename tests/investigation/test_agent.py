"""The whole agent, from question to published report, on an engine in memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from investigation.steps import AskModel, CallTool, Question, Report, Turn, fit
from investigation.tools import DEFAULT_CORPUS
from tests.investigation.conftest import driver, question


async def test_the_default_incident_is_solved() -> None:
    report: Report = await driver().run({"text": "why do checkouts fail?"})
    assert "orders-db.pool.max 40 -> 4" in report.answer
    assert "deploy.log:4" in report.answer
    assert report.confidence == "high"
    assert {citation.file for finding in report.findings for citation in finding.citations} >= {
        "checkout.log",
        "deploy.log",
        "gateway.log",
    }
    unrelated = [f.title for f in report.findings if f.citations[0].file == "host.log"]
    assert all(title.startswith("Probably another matter") for title in unrelated)


@pytest.mark.parametrize(
    "text", ["why do checkouts fail?", "is someone breaking in?", "what happened?", "who? where?"]
)
async def test_every_citation_is_true(text: str) -> None:
    report: Report = await driver().run({"text": text})
    assert report.findings
    assert report.unsupported == ()
    for finding in report.findings:
        for citation in finding.citations:
            lines = (DEFAULT_CORPUS / citation.file).read_text().splitlines()
            assert citation.text in " ".join(lines[citation.line - 1].split())


async def test_other_questions_and_other_logs_give_other_reports(corpus: Path) -> None:
    answers = {
        (await driver().run({"text": text, "corpus": where})).answer
        for text in ("why do checkouts fail?", "is someone breaking in?")
        for where in ("", str(corpus))
    }
    assert len(answers) == 4


async def test_two_runs_ask_for_the_same_steps(corpus: Path) -> None:
    first, second = driver(), driver()
    reports = [await one.run(question(corpus)) for one in (first, second)]
    assert reports[0] == reports[1]
    assert first.asked == second.asked
    assert first.recorded == second.recorded


def test_another_hash_seed_changes_nothing() -> None:
    script = (
        "import asyncio;"
        "from tests.investigation.conftest import driver;"
        "d = driver();"
        "r = asyncio.run(d.run({'text': 'why do checkouts fail?'}));"
        "print(r.model_dump_json()); print(d.asked)"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[2])},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "77")
    }
    assert len(outputs) == 1


async def test_the_report_says_what_it_took(corpus: Path) -> None:
    it = driver()
    report: Report = await it.run(question(corpus))
    steps = [step for batch in it.steps for step in batch]
    assert report.model_calls == sum(isinstance(step, AskModel) for step in steps)
    assert report.tool_calls == sum(isinstance(step, CallTool) for step in steps)
    assert report.tokens_in > 0
    assert report.cost == report.tokens_in * 2 + report.tokens_out * 8
    assert it.steps[-1][0].report == report


async def test_independent_tools_are_called_at_once(corpus: Path) -> None:
    it = driver()
    await it.run(question(corpus))
    assert max(len(batch) for batch in it.steps) >= 3


async def test_a_run_stays_small(corpus: Path) -> None:
    it = driver()
    await it.run({"text": "why do checkouts fail?"})
    for batch, results in zip(it.steps, it.recorded, strict=True):
        for step in batch:
            assert len(step.model_dump_json()) < 100_000
        assert all(len(json.dumps(result)) < 50_000 for result in results)


def test_a_conversation_keeps_the_newest_and_fits() -> None:
    turns = [Turn(text=f"turn {n}", calls=(), results=("x" * 1_000,)) for n in range(50)]
    kept = fit(turns, limit=5_000)
    assert sum(turn.size() for turn in kept) <= 5_000
    assert kept[-1] == turns[-1]
    assert [turn.text for turn in kept] == [turn.text for turn in turns[-len(kept) :]]
    assert len(fit(turns[:1], limit=10)) == 1


async def test_an_unreadable_corpus_ends_in_a_report_that_says_so(tmp_path: Path) -> None:
    report: Report = await driver().run(question(tmp_path / "nowhere"))
    assert "does not exist" in report.answer
    assert report.findings == ()


async def test_the_report_names_what_it_does_not_cover(corpus: Path) -> None:
    (corpus / "core.bin").write_bytes(b"\0")
    report: Report = await driver().run(question(corpus))
    assert "Not covered: core.bin (binary)." in report.answer


async def test_unreachable_tools_end_in_a_report_that_says_so(corpus: Path) -> None:
    it = driver(tools_url="http://127.0.0.1:9")
    report: Report = await it.run(question(corpus))
    assert "could not be reached" in report.answer


def test_the_agent_module_imports_only_what_a_sandbox_takes() -> None:
    script = (
        "import sys, investigation.agent;"
        "heavy = {'openai', 'httpx', 'uvicorn', 'starlette', 'rich',"
        " 'investigation.tools', 'investigation.settings'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"


def test_a_question_has_limits() -> None:
    for bad in (
        {"text": ""},
        {"text": "a\0b"},
        {"text": "x", "corpus": "\0"},
        {"text": "x" * 3_000},
        {"text": "x", "max_model_calls": 0},
    ):
        with pytest.raises(ValueError, match="validation error"):
            Question.model_validate(bad)
