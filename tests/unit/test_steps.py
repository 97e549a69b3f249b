"""The seam without an engine: what advance asks for, what identifies a step, what agents may do."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

from two_workers import (
    AgentError,
    Batch,
    Done,
    Sleep,
    Step,
    StepFailed,
    WaitForSignal,
    advance,
    close,
    do,
    do_all,
    fingerprint,
)
from two_workers.steps import Failed, Succeeded, dump_outcome, load_outcome, result_adapter


class Reply(BaseModel):
    text: str


class AskModel(Step[Reply]):
    prompt: str
    asked_at: str = ""
    volatile = frozenset({"asked_at"})


class Count(Step[int]):
    of: str


def reply(text: str) -> Succeeded:
    return Succeeded(value=Reply(text=text))


FAILED = Failed(error="ConnectionError", message="refused", attempts=3)


async def one_then_two(prompt: str) -> str:
    first = await do(AskModel(prompt=prompt))
    second, count = await do_all([AskModel(prompt=first.text), AskModel(prompt="b")])
    return second.text + count.text


def test_an_agent_is_advanced_batch_by_batch() -> None:
    plan = one_then_two("a")
    assert advance(plan, None) == Batch((AskModel(prompt="a"),))
    assert advance(plan, [reply("x")]) == Batch((AskModel(prompt="x"), AskModel(prompt="b")))
    assert advance(plan, [reply("y"), reply("z")]) == Done("yz")


def test_an_empty_batch_is_never_asked_for() -> None:
    async def agent() -> list[int]:
        return await do_all(list[Count]())

    assert advance(agent(), None) == Done([])


def test_a_nested_agent_is_the_same_plan() -> None:
    async def outer() -> str:
        return await one_then_two("inner")

    assert advance(outer(), None) == Batch((AskModel(prompt="inner"),))


def test_a_failed_step_raises_inside_the_agent_where_it_can_be_handled() -> None:
    async def agent() -> str:
        try:
            await do(AskModel(prompt="a"))
        except StepFailed as failure:
            return f"{failure.step}/{failure.error}/{failure.attempts}"
        return "no failure"

    plan = agent()
    advance(plan, None)
    assert advance(plan, [FAILED]) == Done("ask_model/ConnectionError/3")


def test_do_all_raises_the_first_failure_in_the_order_of_its_steps() -> None:
    async def agent() -> None:
        await do_all([Count(of="a"), Count(of="b"), Count(of="c")])

    plan = agent()
    advance(plan, None)
    later = Failed(error="Later", message="", attempts=1)
    with pytest.raises(StepFailed, match="ConnectionError: refused"):
        advance(plan, [Succeeded(value=1), FAILED, later])


def test_do_all_can_keep_failures_in_their_places() -> None:
    async def agent() -> list[str]:
        found = await do_all([Count(of="a"), Count(of="b")], keep_failures=True)
        return [type(value).__name__ for value in found]

    plan = agent()
    advance(plan, None)
    assert advance(plan, [Succeeded(value=1), FAILED]) == Done(["int", "StepFailed"])


async def test_awaiting_anything_else_names_the_culprit() -> None:
    async def agent() -> None:
        await asyncio.sleep(1)

    with pytest.raises(AgentError, match=r"may await only do\(\) .* awaited sleep\(\)"):
        advance(agent(), None)


def test_a_closed_agent_runs_its_finally_but_may_not_ask_again() -> None:
    cleaned: list[str] = []

    async def tidy() -> None:
        try:
            await do(Count(of="a"))
        finally:
            cleaned.append("tidy")

    async def greedy() -> None:
        try:
            await do(Count(of="a"))
        finally:
            await do(Count(of="b"))

    plan = tidy()
    advance(plan, None)
    close(plan)
    assert cleaned == ["tidy"]
    plan = greedy()
    advance(plan, None)
    with pytest.raises(AgentError, match="further step"):
        close(plan)


def test_the_identity_of_a_step_is_its_kind_and_all_fields_that_are_not_volatile() -> None:
    first = AskModel(prompt="a", asked_at="monday")
    assert fingerprint(first) == fingerprint(AskModel(prompt="a", asked_at="tuesday"))
    assert fingerprint(first) != fingerprint(AskModel(prompt="b", asked_at="monday"))
    assert fingerprint(Count(of="a")) != fingerprint(AskModel(prompt="a"))
    assert fingerprint(Count(of="a")).startswith("count:")


def test_a_set_cannot_identify_a_step() -> None:
    with pytest.raises(TypeError, match="use a tuple"):

        class Bad(Step[int]):
            words: frozenset[str]


def test_a_step_must_name_its_result() -> None:
    class Nameless(Step):  # type: ignore[type-arg] # the mistake under test
        pass

    with pytest.raises(TypeError, match="write Step"):
        result_adapter(Nameless)


def test_a_fingerprint_does_not_depend_on_the_hash_seed() -> None:
    code = (
        "from two_workers import Step, fingerprint\n"
        "class S(Step[int]):\n    m: dict[str, int]\n"
        "print(fingerprint(S(m={'b': 1, 'a': 2, 'c': 3})))"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(printed) == 1


@pytest.mark.parametrize("outcome", [reply("x"), FAILED])
def test_an_outcome_survives_its_record(outcome: Succeeded | Failed) -> None:
    step = AskModel(prompt="a")
    assert load_outcome(step, dump_outcome(step, outcome)) == outcome


def test_a_record_of_another_type_is_refused() -> None:
    with pytest.raises(ValidationError):
        load_outcome(Count(of="a"), dump_outcome(AskModel(prompt="a"), reply("x")))


def test_waits_have_results_too() -> None:
    assert result_adapter(Sleep).validate_python(None) is None
    assert result_adapter(WaitForSignal).validate_python({"a": [1]}) == {"a": [1]}


def test_steps_are_frozen_and_take_no_unknown_field() -> None:
    step = Count(of="a")
    with pytest.raises(ValidationError):
        step.of = "b"  # type: ignore[misc] # the mistake under test
    with pytest.raises(ValidationError):
        Count(of="a", by="b")  # type: ignore[call-arg] # the mistake under test
