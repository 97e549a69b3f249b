"""Swap the engine by one setting: the same requests get the same answers.

What stays different is listed in `investigation/service/SWAP.md`; the second test measures every
row of it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from examples.review_documents import APP as REVIEW
from tests.app_bench import Bench
from tests.contract.agents import in_sequence
from tests.contract.probe import Probe, contract_app
from tests.service.swapping import answers_of, both_engines

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
async def engines(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, Bench]]:
    async with both_engines(tmp_path_factory.mktemp("engines")) as benches:
        yield benches


@pytest.mark.parametrize("count", [10, pytest.param(50, marks=pytest.mark.slow)])
async def test_the_same_requests_get_the_same_answers(
    engines: dict[str, Bench], count: int
) -> None:
    first, second = [await answers_of(bench, count) for bench in engines.values()]

    assert len(first) == len(second) == count
    for number, (one, other) in enumerate(zip(first, second, strict=True)):
        assert one == other, f"request {number}"
    ended = [answer.get("state") or answer["status"] for answer in first]
    assert set(ended) == {"succeeded", "failed", "cancelled", 409, 422}


async def test_the_list_of_differences_is_true(engines: dict[str, Bench]) -> None:
    rows = re.findall(r"^\| (?!what|-)(.+) \| (.+) \| (.+) \|$", DOC, re.MULTILINE)
    natives = {name: set((await held_run(bench)).native) for name, bench in engines.items()}
    measured = [
        [await waits_are_listed(bench) for bench in engines.values()],
        [str(len((await held_run(bench)).fence or ())) for bench in engines.values()],
        [" ".join(sorted(set.intersection(*natives.values()))) or "none"] * 2,
    ]

    assert list(engines) == ["hand_rolled", "temporal"]
    assert [list(row[1:]) for row in rows] == measured


DOC = (ROOT / "investigation/service/SWAP.md").read_text()


async def waits_are_listed(bench: Bench) -> str:
    """Whether steps that the engine carries out itself are among the recorded ones."""
    async with bench.worker(REVIEW):
        documents = str(ROOT / "examples/documents")
        run_id = await bench.start(REVIEW, {"path": documents, "settle": 0.05})
        await bench.engine.signal(run_id, "approve", {"by": "Ada"}, signal_id="one")
        await bench.engine.result(run_id, timeout=120)
    kinds = {record.kind for record in await bench.engine.steps(run_id)}
    assert "read_document" in kinds
    return "listed" if {"sleep", "wait_for_signal"} <= kinds else "not listed"


async def held_run(bench: Bench) -> Any:
    """A run that is owned at this moment."""
    probe = Probe()
    app = contract_app("swap-held", in_sequence, probe)
    async with bench.worker(app):
        run_id = await bench.start(app, {"steps": ["a"], "how": "hold"})
        await probe.until(lambda: len(probe.begun) == 1)
        async with asyncio.timeout(60):
            while (view := await bench.engine.get(run_id)).owner is None:
                await asyncio.sleep(0.05)
        probe.gate.set()
        await bench.engine.result(run_id, timeout=60)
    return view
