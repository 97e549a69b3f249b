"""Apps, discovery of engines, and what a wrong name or setting says."""

from __future__ import annotations

import pytest

from two_workers import (
    App,
    BadInput,
    Effect,
    Retry,
    Run,
    RunState,
    Step,
    connect,
    engine_names,
    engine_plugin,
    load_app,
)
from two_workers.engines import new_worker_id


class Known(Step[int]):
    n: int


class Unknown(Step[int]):
    n: int


async def double(payload: dict[str, int]) -> list[int]:
    return [payload["n"] * 2]


APP = App(kind="double", agent=double, effects={Known: Effect(double)})
NOT_AN_APP = 7


def test_an_app_is_loaded_by_its_dotted_name() -> None:
    assert load_app(f"{__name__}:APP") is APP


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("no.such.module:APP", "No module named"),
        (f"{__name__}:MISSING", "MISSING"),
        (f"{__name__}:NOT_AN_APP", "found int"),
        ("", "expected `package.module:NAME`"),
    ],
)
def test_a_wrong_app_path_says_what_was_expected(path: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        load_app(path)


def test_a_step_without_an_effect_names_the_known_ones() -> None:
    assert APP.effect(Known(n=1)).run is double
    with pytest.raises(BadInput, match=r"registers no effect for Unknown; known: \['known'\]"):
        APP.effect(Unknown(n=1))


def test_payload_and_result_follow_the_agents_annotations() -> None:
    plan = APP.plan({"n": "21"})
    with pytest.raises(StopIteration) as end:
        plan.send(None)
    assert APP.dump_result(end.value.value) == [42]


def test_retries_back_off_up_to_a_maximum() -> None:
    retry = Retry(initial=1, backoff=2, maximum=5)
    assert [retry.delay(n) for n in (1, 2, 3, 4)] == [1, 2, 4, 5]


def test_both_engines_are_found_by_name() -> None:
    assert engine_names() == ["hand_rolled", "temporal"]
    assert [engine_plugin(name).name for name in engine_names()] == engine_names()


async def test_an_unknown_engine_names_the_installed_ones() -> None:
    with pytest.raises(BadInput, match="unknown engine 'rabbit'; installed: hand_rolled, temporal"):
        async with connect("rabbit"):
            pass


@pytest.mark.parametrize(
    "change", [{"run_id": ""}, {"run_id": "a b"}, {"tenant": ""}, {"priority": 6}, {"budget": -1}]
)
def test_a_run_refuses_what_no_engine_could_keep(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(change))):
        Run(**{"run_id": "a", "kind": "k", **change})  # type: ignore[arg-type] # the mistake under test


def test_final_states() -> None:
    assert {s.value for s in RunState if s.is_final} == {"succeeded", "failed", "cancelled"}


def test_a_worker_id_is_never_reused() -> None:
    assert len({new_worker_id() for _ in range(100)}) == 100
