"""The driver, and a worker in this process: replay, waits, cancellation, SQL with a record."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic import BaseModel

from hand_rolled import WithSQL, operations
from hand_rolled.plugin import PLUGIN
from tests.hand_rolled.bench import Store
from two_workers import (
    App,
    Call,
    Effect,
    PermanentFailure,
    Retry,
    RetryLater,
    RunCancelled,
    RunFailed,
    RunState,
    Sleep,
    Step,
    StepFailed,
    WaitForSignal,
    do,
    do_all,
)

Perform = Callable[[Any, Call], Coroutine[Any, Any, Any]]


class Ask(Step[str]):
    text: str


class Count(Step[int]):
    text: str


class Question(BaseModel):
    text: str = ""


def app(agent: Any, perform: Perform, *, version: str = "1", **more: Any) -> App:
    quick = Retry(max_attempts=3, initial=0.02, backoff=1)
    effect = Effect(perform, retry=quick, **more)
    return App(kind="test", agent=agent, effects={Ask: effect, Count: effect}, version=version)


@asynccontextmanager
async def working(store: Store, served: App, **changes: Any) -> AsyncIterator[str]:
    """A worker in this process, stopped in order on leaving."""
    settings = store.database.settings.model_copy(update={"poll_interval": 0.1} | changes)
    stop = asyncio.Event()
    worker_id = f"worker-{time.monotonic_ns()}"
    worker = PLUGIN.worker(settings, [served], worker_id=worker_id)
    task = asyncio.create_task(worker.run(stop))
    try:
        yield worker_id
    finally:
        stop.set()
        await task


async def ask_twice(question: Question) -> list[str]:
    return [await do(Ask(text="one")), await do(Ask(text="two"))]


async def ask_together(question: Question) -> list[str]:
    return await do_all([Ask(text="one"), Ask(text="two"), Ask(text="three")])


class Held:
    """An effect that begins and then waits to be told."""

    def __init__(self) -> None:
        self.begun: asyncio.Queue[Call] = asyncio.Queue()
        self.go = asyncio.Event()
        self.cancelled_at: list[float] = []

    async def __call__(self, step: Ask, call: Call) -> str:
        self.begun.put_nowait(call)
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled_at.append(time.monotonic())
            raise
        return step.text


async def answer(step: Ask, call: Call) -> str:
    return step.text


# Cancellation


async def test_the_push_reaches_the_step_long_before_a_heartbeat(store: Store) -> None:
    run_id, held = await store.enqueue(), Held()
    store.database.settings = store.database.settings.model_copy(update={"notify": True})
    slow = {"lease_ttl": 120, "heartbeat_interval": 30, "poll_interval": 30}
    async with working(store, app(ask_twice, held), **slow):
        async with asyncio.timeout(60):
            await held.begun.get()
        await store.until(lambda: _listening(store))
        asked = time.monotonic()
        await store.engine.cancel(run_id)
        with pytest.raises(RunCancelled):
            await store.engine.result(run_id, timeout=60)
    assert held.cancelled_at[0] - asked < 10, "a third of the heartbeat interval"


async def _listening(store: Store) -> bool:
    return await store.value(
        "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() "
        "AND query LIKE 'LISTEN%%'"
    )


async def test_without_the_push_a_heartbeat_brings_the_cancellation(store: Store) -> None:
    run_id, held = await store.enqueue(), Held()
    async with working(store, app(ask_twice, held), notify=False, heartbeat_interval=0.5):
        await held.begun.get()
        await store.engine.cancel(run_id)
        with pytest.raises(RunCancelled):
            await store.engine.result(run_id, timeout=60)
    assert len(held.cancelled_at) == 1


async def test_an_agent_that_asks_for_more_while_it_is_ended_is_refused(store: Store) -> None:
    held = Held()

    async def stubborn(question: Question) -> str:
        try:
            return await do(Ask(text="one"))
        finally:
            await do(Ask(text="cleanup"))

    run_id = await store.enqueue()
    async with working(store, app(stubborn, held), notify=False, heartbeat_interval=0.5):
        await held.begun.get()
        await store.engine.cancel(run_id)
        with pytest.raises(RunCancelled):
            await store.engine.result(run_id, timeout=60)
    assert held.begun.empty(), "the cleanup was never begun"


async def test_losing_the_lease_stops_an_uninterruptible_step_too(store: Store) -> None:
    run_id, held = await store.enqueue(), Held()
    served = app(ask_twice, held, uninterruptible=True)
    async with working(store, served, heartbeat_interval=0.3):
        await held.begun.get()
        await store.rows("UPDATE runs SET lease_generation = 2, lease_owner = 'someone else'")
        async with asyncio.timeout(30):
            while not held.cancelled_at:
                await asyncio.sleep(0.02)
    assert (await store.engine.get(run_id)).owner == "someone else"


# Replay


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


# Retries and waits


async def test_a_run_that_backs_off_holds_no_lease(store: Store) -> None:
    async def busy(step: Ask, call: Call) -> str:
        raise RetryLater("429", after=3600)

    run_id = await store.enqueue()
    async with working(store, app(ask_twice, busy)):
        await store.until(lambda: _state(store, run_id, "scheduled"))
        row = await store.row(run_id)
    assert row["lease_owner"] is None
    assert (await store.rows("SELECT * FROM open_steps"))[0]["error"] == "RetryLater: 429"


async def _state(store: Store, run_id: str, state: str) -> bool:
    return (await store.row(run_id))["status"] == state


async def test_a_failing_step_does_not_interrupt_its_siblings(store: Store) -> None:
    ended: list[str] = []

    async def perform(step: Ask, call: Call) -> str:
        if step.text == "one":
            raise PermanentFailure("no")
        await asyncio.sleep(0.2)
        ended.append(step.text)
        return step.text

    run_id = await store.enqueue()
    async with working(store, app(ask_together, perform)):
        with pytest.raises(RunFailed, match="PermanentFailure: no"):
            await store.engine.result(run_id, timeout=60)
    assert sorted(ended) == ["three", "two"]


async def test_a_step_that_takes_too_long_is_stopped_and_tried_again(store: Store) -> None:
    attempts: list[int] = []

    async def slow(step: Ask, call: Call) -> str:
        attempts.append(call.attempt)
        if call.attempt < 3:
            await asyncio.sleep(600)
        return step.text

    run_id = await store.enqueue()
    async with working(store, app(ask_twice, slow, timeout=0.2)):
        await store.engine.result(run_id, timeout=60)
    assert attempts == [1, 2, 3, 1, 2, 3]


async def test_a_step_that_cancels_itself_has_failed(store: Store) -> None:
    async def suicidal(step: Ask, call: Call) -> str:
        raise asyncio.CancelledError

    run_id = await store.enqueue()
    async with working(store, app(ask_twice, suicidal)):
        with pytest.raises(RunFailed, match="CancelledError"):
            await store.engine.result(run_id, timeout=60)


async def test_effects_of_a_batch_come_before_its_waits(store: Store) -> None:
    async def agent(question: Question) -> list[Any]:
        return await do_all([Sleep(seconds=0.3), WaitForSignal(name="go"), Ask(text="work")])

    run_id = await store.enqueue()
    async with working(store, app(agent, answer)):
        await store.until(lambda: _state(store, run_id, "waiting"))
        kinds = [record.kind for record in await store.engine.steps(run_id)]
        assert "ask" in kinds
        await store.engine.signal(run_id, "go", {"by": "me"}, signal_id="1")
        assert await store.engine.result(run_id, timeout=60) == [None, {"by": "me"}, "work"]


async def test_no_signal_is_slept_through(store: Store) -> None:
    """Signals from many clients, while the runs look, park and wake up."""

    async def agent(question: Question) -> list[Any]:
        return [await do(WaitForSignal(name="go")) for _ in range(3)]

    runs = [await store.enqueue() for _ in range(12)]

    async def signal(run_id: str, number: int) -> None:
        await asyncio.sleep(random.uniform(0, 1.5))
        await store.engine.signal(run_id, "go", number, signal_id=str(number))

    async with working(store, app(agent, answer)), working(store, app(agent, answer)):
        await asyncio.gather(*(signal(run_id, n) for run_id in runs for n in range(3)))
        for run_id in runs:
            assert sorted(await store.engine.result(run_id, timeout=60)) == [0, 1, 2]


async def test_a_suspended_run_stops_at_its_next_boundary_and_goes_on_later(store: Store) -> None:
    held = Held()
    run_id = await store.enqueue()
    async with working(store, app(ask_twice, held), heartbeat_interval=0.3):
        await held.begun.get()
        await operations.suspend(store.database, run_id)
        await asyncio.sleep(1)
        assert held.cancelled_at == [], "a suspension interrupts nothing"
        held.go.set()
        await store.until(lambda: _state(store, run_id, "suspended"))
        await operations.resume(store.database, run_id)
        assert await store.engine.result(run_id, timeout=60) == ["one", "two"]
    assert held.begun.qsize() == 1


async def test_a_fan_out_over_the_budget_fails_after_the_calls_that_were_paid_for(
    store: Store,
) -> None:
    """Three calls, each of which may cost 400 and does: two fit, and are not thrown away."""

    async def price(step: Ask, call: Call) -> str:
        await asyncio.sleep(0.2)
        return step.text

    run_id = await store.enqueue(budget=1000)
    served = app(ask_together, price, worst_case=lambda step: 400, cost=lambda result: 400)
    async with working(store, served):
        with pytest.raises(RunFailed, match="BudgetExceeded"):
            await store.engine.result(run_id, timeout=60)
    assert len(await store.engine.steps(run_id)) == 2
    assert (await store.engine.get(run_id)).cost == 800


# Statements with a record


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


# The worker


async def test_a_worker_declared_dead_goes_on_under_a_new_name(store: Store) -> None:
    held = Held()
    run_id = await store.enqueue()
    async with working(store, app(ask_twice, held), heartbeat_interval=0.3) as worker_id:
        first = await held.begun.get()
        await store.rows("UPDATE workers SET dead_at = clock_timestamp()")
        second = await held.begun.get()
        held.go.set()
        assert await store.engine.result(run_id, timeout=60) == ["one", "two"]
    assert (first.fence, second.fence) == ((1,), (2,))
    names = await store.rows("SELECT worker_id FROM workers ORDER BY number")
    assert [row["worker_id"] for row in names] == [worker_id, f"{worker_id}~1"]
    assert len(held.cancelled_at) == 1


async def test_a_suspect_runs_alone_until_it_records_a_step(store: Store) -> None:
    held = Held()

    async def first_holds(step: Ask, call: Call) -> str:
        if call.run_id == "suspect" and step.text == "one":
            return await held(step, call)
        return step.text

    await store.enqueue("suspect")
    await store.rows("UPDATE runs SET suspect = true, crashes = 2")
    other = None
    async with working(store, app(ask_twice, first_holds)):
        await held.begun.get()
        other = await store.enqueue()
        await asyncio.sleep(0.5)
        assert (await store.engine.get(other)).state is RunState.PENDING
        held.go.set()
        await store.engine.result(other, timeout=60)
        await store.engine.result("suspect", timeout=60)
    assert not (await store.row("suspect"))["suspect"]
