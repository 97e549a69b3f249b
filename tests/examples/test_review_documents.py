"""The example agent: the same file on both engines, with a person who approves."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from examples.review_documents import APP
from tests.app_bench import Bench
from two_workers import RunState

ROOT = Path(__file__).parents[2]
DOCUMENTS = ROOT / "examples/documents"


def remarks(approval: Any) -> Any:
    return {
        "remarks": {
            str(DOCUMENTS / "plan.md"): [
                "2. TODO: who is on call during the switch?",
                "broken link: contract.md",
            ],
            str(DOCUMENTS / "runbook.md"): ["broken link: rollback.sh"],
            str(DOCUMENTS / "scan.doc"): [
                "cannot be read: not UTF-8 text (invalid start byte)",
            ],
        },
        "approval": approval,
    }


async def test_the_same_file_reviews_documents_on_either_engine(bench: Bench) -> None:
    run_id = await bench.start(APP, {"path": str(DOCUMENTS), "settle": 0.2})
    async with bench.worker(APP):
        parked = await bench.until_state(run_id, RunState.WAITING)

        for _ in range(2):  # an approval that arrives twice is one
            await bench.engine.signal(run_id, "approve", {"by": "Ada"}, signal_id="decision-1")

        assert await bench.engine.result(run_id, timeout=60) == remarks({"by": "Ada"})
    assert parked.owner is None
    kinds = [record.kind for record in await bench.engine.steps(run_id)]
    assert kinds.count("read_document") == 3
    assert kinds.count("link_exists") == 4


async def test_a_parked_review_survives_its_workers_and_continues_once(bench: Bench) -> None:
    run_id = await bench.start(APP, {"path": str(DOCUMENTS)})
    async with bench.worker(APP):
        await bench.until_state(run_id, RunState.WAITING)
    # No worker is left. The decision is taken now, and found by the next worker.
    await bench.engine.signal(run_id, "approve", {"by": "Bob"}, signal_id="decision-1")
    async with bench.worker(APP):
        assert await bench.engine.result(run_id, timeout=60) == remarks({"by": "Bob"})


def test_the_agent_is_shorter_than_forty_lines_and_imports_no_engine() -> None:
    text = (ROOT / "examples/review_documents.py").read_text()
    _, agent, _ = [part for part in text.split(f"# {'-' * 92}\n") if part]
    lines = [line for line in agent.splitlines() if line.strip()]

    assert 10 < len(lines) < 40
    assert not any(name in text for name in ("import hand_rolled", "temporalio", "psycopg"))


def test_neither_engine_imports_an_example() -> None:
    for folder in ("hand_rolled", "temporal_version", "two_workers", "investigation"):
        for directory, _, names in os.walk(ROOT / folder):
            for name in names:
                if name.endswith(".py"):
                    source = Path(directory, name).read_text()
                    assert "from examples" not in source, f"{directory}/{name}"
                    assert "import examples" not in source, f"{directory}/{name}"
