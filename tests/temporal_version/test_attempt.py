"""One attempt of a step, without a server: what it tells the next one."""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio import activity
from temporalio.activity import ActivityCancellationDetails
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from temporal_version.activities import Attempt
from temporal_version.messages import PAYLOAD_LIMIT, StepCall, Tries, fence
from temporal_version.settings import read
from tests.temporal_version.steps import Answer, Work
from two_workers import Call, Effect, PermanentFailure, Retry, RetryLater

CALL = StepCall(key="run-1/0.0", step={"text": "a", "ledger": ""})
POLICY = Retry(max_attempts=3, initial=0.5, backoff=2.0)


class Alone(Attempt):
    """There is no server here, so nobody can have cancelled the run."""

    async def _refuse_cancelled(self, info: activity.Info) -> None:
        return


class Desk:
    """An activity environment, the attempt in it, and the heartbeats it sent."""

    def __init__(self, run: Callable[[Work, Call], Awaitable[Any]], **effect: Any) -> None:
        self.environment = ActivityEnvironment()
        self.beats: list[Tries] = []
        self.environment.on_heartbeat = lambda *details: self.beats.append(details[0])
        quick = {"TEMPORAL_VERSION_HEARTBEAT_THROTTLE": "0.1"}
        self.attempt = Alone(
            Work, Effect(run, retry=POLICY, **effect), read(quick), "worker-1", "resources"
        )

    def given(self, tries: Tries | None = None, **info: Any) -> Desk:
        details = [tries.model_dump()] if tries else []
        self.environment.info = replace(
            self.environment.info, heartbeat_details=details, workflow_id="run-1", **info
        )
        return self

    async def perform(self) -> Any:
        return await self.environment.run(self.attempt, CALL)

    async def failure(self) -> ApplicationError:
        with pytest.raises(ApplicationError) as caught:
            await self.perform()
        return caught.value


def raising(error: Exception) -> Callable[[Work, Call], Awaitable[Answer]]:
    async def run(step: Work, call: Call) -> Answer:
        raise error

    return run


async def answer(step: Work, call: Call) -> Answer:
    return Answer(text=step.text, price=4)


async def test_a_result_carries_its_cost() -> None:
    result = await Desk(answer, cost=lambda a: a.price).perform()
    assert (result.value, result.cost) == ({"text": "a", "price": 4}, 4)


async def test_an_effect_learns_who_it_is_and_what_came_before() -> None:
    calls: list[Call] = []

    async def run(step: Work, call: Call) -> Answer:
        calls.append(call)
        return Answer(text="")

    started = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    await Desk(run).given(Tries(checkpoint={"page": 7}), attempt=3, started_time=started).perform()
    [call] = calls
    assert (call.run_id, call.key, call.worker) == ("run-1", "run-1/0.0", "worker-1")
    assert (call.attempt, call.checkpoint, call.resources) == (3, {"page": 7}, "resources")
    assert call.fence == (1767323045678901, 3)


def test_a_fence_rises_through_a_reset_which_sets_the_attempt_back() -> None:
    before = datetime(2026, 1, 1, tzinfo=UTC)
    assert fence(before + timedelta(microseconds=1), 1) > fence(before, 5)


async def test_a_failure_is_counted_and_backs_off() -> None:
    desk = Desk(raising(ConnectionError("no"))).given(Tries(failures=1, excused=2), attempt=4)
    failure = await desk.failure()
    assert (failure.type, failure.message, failure.details) == ("ConnectionError", "no", (2,))
    assert not failure.non_retryable
    assert failure.next_retry_delay is not None
    assert 0.8 <= failure.next_retry_delay.total_seconds() <= 1.2, "1.0 s by the policy, jittered"
    assert desk.beats[-1].failures == 2, "what the failed attempt carries home"


async def test_the_policys_last_failure_is_final() -> None:
    failure = await Desk(raising(ConnectionError("no"))).given(Tries(failures=2)).failure()
    assert failure.non_retryable
    assert failure.details == (3,)


async def test_a_permanent_failure_is_final_at_once() -> None:
    failure = await Desk(raising(PermanentFailure("refused"))).failure()
    assert failure.non_retryable
    assert (failure.type, failure.details) == ("PermanentFailure", (1,))


async def test_retry_later_waits_as_told_and_counts_no_failure() -> None:
    desk = Desk(raising(RetryLater("429", after=7.5))).given(Tries(failures=2, checkpoint=3))
    failure = await desk.failure()
    assert not failure.non_retryable
    assert failure.next_retry_delay == timedelta(seconds=7.5)
    assert desk.beats[-1] == Tries(failures=2, excused=1, checkpoint=3)


async def test_lost_workers_are_no_failures_until_they_are_poison() -> None:
    limit = read({}).max_losses
    tries = Tries(failures=1, excused=1)
    assert await Desk(answer).given(tries, attempt=limit + 3).perform()
    failure = await Desk(answer).given(tries, attempt=limit + 4).failure()
    assert (failure.type, failure.non_retryable) == ("WorkerLost", True)


async def test_an_attempt_that_takes_too_long_fails_with_the_timeout() -> None:
    async def forever(step: Work, call: Call) -> Answer:
        await asyncio.Event().wait()
        raise AssertionError

    failure = await Desk(forever, timeout=0.05).failure()
    assert (failure.type, failure.details) == ("TimeoutError", (1,))
    assert "no result in 0.05 s" in failure.message


async def test_a_result_over_the_limit_of_one_payload_fails_instead_of_being_refused() -> None:
    async def run(step: Work, call: Call) -> Answer:
        return Answer(text="x" * (PAYLOAD_LIMIT + 1))

    failure = await Desk(run).failure()
    assert failure.non_retryable
    assert "return a reference" in failure.message


async def test_beats_come_by_themselves_and_carry_the_newest_checkpoint() -> None:
    async def run(step: Work, call: Call) -> Answer:
        for page in range(1000):
            call.beat(page)
        await asyncio.to_thread(call.beat, "from a thread")
        while len(desk.beats) < 3:
            await asyncio.sleep(0.01)
        return Answer(text="")

    desk = Desk(run)
    async with asyncio.timeout(30):
        await desk.perform()
    assert desk.beats[0].checkpoint == "from a thread", "a burst is one heartbeat"
    assert desk.beats[-1].checkpoint == "from a thread"


async def test_without_progress_no_beat_vouches_for_it() -> None:
    gone = asyncio.Event()

    async def run(step: Work, call: Call) -> Answer:
        await gone.wait()
        return Answer(text="")

    desk = Desk(run)
    settings = desk.attempt.settings.model_copy(update={"progress_timeout": 0.25})
    desk.attempt = replace(desk.attempt, settings=settings)
    task = asyncio.create_task(desk.perform())
    await asyncio.sleep(1.0)  # ten beats' time
    gone.set()
    await task
    assert 1 <= len(desk.beats) <= 3


async def cancelled(desk: Desk, begun: asyncio.Event, **how: bool) -> None:
    await begun.wait()
    desk.environment.cancel(cancellation_details=ActivityCancellationDetails(**how))


@pytest.mark.parametrize("uninterruptible", [False, True])
@pytest.mark.parametrize("reason", ["cancel_requested", "not_found", "worker_shutdown"])
async def test_what_a_cancellation_does(uninterruptible: bool, reason: str) -> None:
    begun, release = asyncio.Event(), asyncio.Event()

    async def run(step: Work, call: Call) -> Answer:
        begun.set()
        await release.wait()
        return Answer(text="done")

    desk = Desk(run, uninterruptible=uninterruptible)
    task = asyncio.create_task(desk.perform())
    await cancelled(desk, begun, **{reason: True})
    if uninterruptible and reason == "worker_shutdown":
        release.set()
        assert (await task).value["text"] == "done", "it ends as it will"
    elif reason == "worker_shutdown":
        with pytest.raises(ApplicationError, match="handed over"):
            await task
        assert desk.beats[-1].excused == 1
    else:
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_thread_may_beat_while_the_loop_is_busy() -> None:
    beaten = threading.Event()

    def in_thread(call: Call) -> None:
        for n in range(100):
            call.beat(n)
        beaten.set()

    async def run(step: Work, call: Call) -> Answer:
        await asyncio.to_thread(in_thread, call)
        return Answer(text="")

    await Desk(run).perform()
    assert beaten.is_set()


def test_a_key_that_is_none_is_refused() -> None:
    from temporal_version.payloads import Cipher
    from two_workers import BadInput

    for key in ("short", base64.b64encode(b"x" * 31).decode()):
        with pytest.raises(BadInput, match="base64 of 32 bytes"):
            Cipher(key)
