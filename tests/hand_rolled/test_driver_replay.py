"""The driver goes on from its journal: what is recorded is not done again and stays the same."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from hand_rolled import WithSQL
from tests.hand_rolled.bench import Store
from tests.hand_rolled.driving import (
    Ask,
    Count,
    Held,
    Question,
    answer,
    app,
    ask_together,
    ask_twice,
    working,
)
from two_workers import App, Call, Effect, RunFailed, RunState, Step, StepFailed, do


async def test_a_takeover_repeats_only_what_is_not_recorded_of_a_fan_out(store: Store) -> None:
    begun: list[str] = []
    gate = asyncio.Event()

    async def perform(step: Ask, call: Call) -> str:
        begun.append(step.text)
        if step.text == "two" and call.fence == (1,):
            await gate.wait()
        return step.text

    run_id = await store.enqueue()
    async with working(store, app(ask_together, perform), drain_timeout=0):
        await store.until(lambda: _recorded(store, 2))
    gate.set()
    async with working(store, app(ask_together, perform)):
        assert await store.engine.result(run_id, timeout=60) == ["one", "two", "three"]
    assert sorted(begun) == ["one", "three", "two", "two"]


async def _recorded(store: Store, steps: int) -> bool:
    return await store.value("SELECT count(*) = %s FROM journal", steps)


# Code that changed


async def changed(question: Question) -> list[str]:
    return [await do(Ask(text="something else")), await do(Ask(text="two"))]


async def asks_less(question: Question) -> list[str]:
    return []


@pytest.mark.parametrize("other_code", [changed, asks_less])
async def test_a_run_whose_code_changed_waits_for_a_worker_that_matches(
    store: Store, other_code: Any
) -> None:
    held = Held()

    async def one_then_hold(step: Ask, call: Call) -> str:
        return step.text if step.text == "one" else await held(step, call)

    run_id = await store.enqueue()
    async with working(store, app(ask_twice, one_then_hold), drain_timeout=0):
        await held.begun.get()
    async with working(store, app(other_code, answer)):
        await store.until(lambda: _mismatched(store))
        view = await store.engine.get(run_id)
        assert (view.state, view.failure) == (RunState.PENDING, None)
        assert "waits for a worker whose code matches" in str(view.recovery)
        assert view.native["crashes"] == 0
    async with working(store, app(ask_twice, answer)):
        assert await store.engine.result(run_id, timeout=60) == ["one", "two"]


async def _mismatched(store: Store) -> bool:
    return await store.value("SELECT bool_or(mismatch IS NOT NULL) FROM runs")


# What is recorded


async def test_a_typed_result_is_the_same_live_and_after_a_takeover(store: Store) -> None:
    class Answer(BaseModel):
        words: tuple[str, ...]

    class AskTyped(Step[Answer]):
        text: str

    async def agent(question: Question) -> str:
        return type((await do(AskTyped(text="x"))).words).__name__

    async def sloppy(step: AskTyped, call: Call) -> Any:
        return {"words": ["a", "b"]}

    served = App(kind="test", agent=agent, effects={AskTyped: Effect(sloppy)})
    run_id = await store.enqueue()
    async with working(store, served):
        assert await store.engine.result(run_id, timeout=60) == "tuple"


@pytest.mark.parametrize("bad", ["not a number", float("nan")])
async def test_a_result_of_the_wrong_type_fails_its_step_and_nothing_else(
    store: Store, bad: object
) -> None:
    async def agent(question: Question) -> str:
        try:
            return str(await do(Count(text="x")))
        except StepFailed as failure:
            return f"failed after {failure.attempts}"

    async def wrong(step: Count, call: Call) -> Any:
        return bad

    run_id = await store.enqueue()
    async with working(store, app(agent, wrong)):
        assert await store.engine.result(run_id, timeout=60) == "failed after 1"


async def test_a_final_result_that_is_not_json_fails_its_run(store: Store) -> None:
    async def agent(question: Question) -> float:
        return float("nan")

    run_id = await store.enqueue()
    async with working(store, app(agent, answer)):
        with pytest.raises(RunFailed, match="its result is not JSON"):
            await store.engine.result(run_id, timeout=60)


async def test_a_beat_that_is_not_json_fails_the_step_that_says_it(store: Store) -> None:
    async def beats_badly(step: Ask, call: Call) -> str:
        call.beat(float("inf"))
        return step.text

    run_id = await store.enqueue()
    async with working(store, app(ask_twice, beats_badly)):
        with pytest.raises(RunFailed, match="not JSON compliant"):
            await store.engine.result(run_id, timeout=60)


async def test_an_effects_statements_commit_exactly_once_with_its_record(store: Store) -> None:
    await store.rows("CREATE TABLE findings (text text)")
    insert = "INSERT INTO findings VALUES (%(text)s)"

    async def find(step: Ask, call: Call) -> WithSQL:
        if call.attempt == 1:
            return WithSQL(step.text, [(insert, {"text": "rolled back"}), ("SELECT 1/0", {})])
        return WithSQL(step.text, [(insert, {"text": step.text})])

    run_id = await store.enqueue()
    async with working(store, app(ask_twice, find)):
        assert await store.engine.result(run_id, timeout=60) == ["one", "two"]
    found = await store.rows("SELECT text FROM findings ORDER BY text")
    assert [row["text"] for row in found] == ["one", "two"]
