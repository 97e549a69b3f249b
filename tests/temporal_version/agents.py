"""Agents for the tests. The sandbox imports this module again for each run."""

from __future__ import annotations

import datetime
import random
import time
import uuid

from tests.temporal_version.steps import Commit, Script, Work
from two_workers import Sleep, WaitForSignal, do, do_all


async def in_sequence(script: Script) -> list[str]:
    answers = []
    for text in script.steps:
        answer = await do(Work(text=text, ledger=script.ledger, how=script.how))
        answers.append(answer.text)
    return answers


async def in_parallel(script: Script) -> list[str]:
    work = [Work(text=t, ledger=script.ledger, how=script.how) for t in script.steps]
    return [answer.text for answer in await do_all(work)]


async def other_text(script: Script) -> list[str]:
    """`in_sequence` after a change of the prompt."""
    answers = []
    for text in script.steps:
        answer = await do(Work(text=f"please {text}", ledger=script.ledger, how=script.how))
        answers.append(answer.text)
    return answers


async def other_order(script: Script) -> list[str]:
    """`in_sequence` after a change of the order of its steps."""
    answers = []
    for text in reversed(script.steps):
        answer = await do(Work(text=text, ledger=script.ledger, how=script.how))
        answers.append(answer.text)
    return answers


async def commits(script: Script) -> str:
    await do(Commit(text="commit", ledger=script.ledger, how=script.how))
    return (await do(Work(text="after", ledger=script.ledger))).text


async def grows(script: Script) -> int:
    """A conversation: each of `calls` calls carries the whole transcript so far."""
    transcript: list[str] = []
    for n in range(script.calls):
        step = Work(text=str(n), ledger="", how=f"reply:{script.size}", filler="".join(transcript))
        transcript.append((await do(step)).text)
    return len("".join(transcript))


async def large(script: Script) -> str:
    """One step that is too large for history, and a result of the size that is asked for."""
    filler = "x" * 50_000
    await do(Work(text="large", ledger=script.ledger, how=script.how, filler=filler))
    return "y" * script.size


async def waits_twice_at_once(script: Script) -> list[object]:
    return await do_all([WaitForSignal(name="go"), WaitForSignal(name="go")])


async def counts_signals(script: Script) -> list[object]:
    """Alternates work and signals, so that it continues as new with some undelivered."""
    seen: list[object] = []
    for n in range(script.calls):
        await do(Work(text=str(n), ledger=script.ledger, how="price:7"))
        if n % 4 == 3:
            seen.append(await do(WaitForSignal(name="go")))
    return seen


async def everything(script: Script) -> list[object]:
    """One of each kind of step, for the saved histories."""
    first = await do(Work(text="first", ledger="", how="price:5"))
    both = await do_all([Work(text="left", ledger=""), Work(text="right", ledger="")])
    await do(Sleep(seconds=0.1))
    signal = await do(WaitForSignal(name="go"))
    await do(Commit(text="commit", ledger=""))
    return [first.text, *(b.text for b in both), signal]


async def reads_the_clock(script: Script) -> str:
    return datetime.datetime.now(datetime.UTC).isoformat()


async def reads_the_time(script: Script) -> float:
    return time.time()


async def reads_a_random_number(script: Script) -> float:
    return random.random()


async def reads_a_uuid(script: Script) -> str:
    return str(uuid.uuid4())
