"""Agents for the contract. On Temporal this module is imported inside the sandbox."""

from __future__ import annotations

import asyncio

from tests.contract.steps import Ask, Commit, Script
from two_workers import Sleep, StepFailed, WaitForSignal, do, do_all


async def in_sequence(script: Script) -> list[str]:
    answers = []
    for text in script.steps:
        answers.append((await do(Ask(text=text, how=script.how))).text)
    return answers


async def in_parallel(script: Script) -> list[str]:
    answers = await do_all([Ask(text=text, how=script.how) for text in script.steps])
    return [answer.text for answer in answers]


async def keeps_failures(script: Script) -> list[str]:
    asked = [Ask(text="good"), Ask(text="bad", how=script.how)]
    answers = await do_all(asked, keep_failures=True)
    return [
        f"{a.step} failed: {a.error} after {a.attempts}" if isinstance(a, StepFailed) else a.text
        for a in answers
    ]


async def recovers(script: Script) -> str:
    try:
        await do(Ask(text="first", how=script.how))
    except StepFailed as failure:
        return (await do(Ask(text=f"instead of {failure.error}"))).text
    return "did not fail"


async def raises(script: Script) -> str:
    await do(Ask(text="one"))
    raise ValueError("the agent has a bug")


async def awaits_a_timer(script: Script) -> str:
    await asyncio.get_running_loop().create_future()
    return "never"


async def waits(script: Script) -> list[object]:
    return [await do(WaitForSignal(name=name)) for name in script.wait_for]


async def waits_beside_work(script: Script) -> list[object]:
    answer, signal = await do_all([Ask(text="work"), WaitForSignal(name="go")])
    return [answer.text, signal]


async def sleeps(script: Script) -> str:
    await do(Ask(text="before"))
    await do(Sleep(seconds=script.seconds))
    return (await do(Ask(text="after"))).text


async def commits(script: Script) -> str:
    await do(Commit(text="commit", how=script.how))
    return (await do(Ask(text="after the commit"))).text
