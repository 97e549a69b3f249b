"""The agents of the study app. On Temporal this module is imported inside the sandbox."""

from __future__ import annotations

from comparison.mapping.tour.steps import Pay, Tour, Visit
from two_workers import WaitForSignal, do, do_all


async def tour(plan: Tour) -> list[str]:
    """One step after the other."""
    return [
        (await do(Visit(place=place, how=plan.how, price=plan.price))).place
        for place in plan.places
    ]


async def fan_out(plan: Tour) -> list[str]:
    """All steps at once."""
    stays = await do_all(
        [Visit(place=place, how=plan.how, price=plan.price) for place in plan.places]
    )
    return [stay.place for stay in stays]


async def payment(plan: Tour) -> list[str]:
    """Each place is paid for, which may not be cut in two, and then visited."""
    done = []
    for place in plan.places:
        done.append((await do(Pay(place=place))).place)
        done.append((await do(Visit(place=f"{place}-receipt", how="answer"))).place)
    return done


async def approval(plan: Tour) -> list[object]:
    """A step, a person's answer, another step."""
    before = await do(Visit(place=plan.places[0], how="answer"))
    answer = await do(WaitForSignal(name="answer"))
    after = await do(Visit(place=plan.places[1], how="answer"))
    return [before.place, answer, after.place]


async def approval_changed(plan: Tour) -> list[object]:
    """`approval` after a deploy that changed its first step."""
    before = await do(Visit(place=f"new-{plan.places[0]}", how="answer"))
    answer = await do(WaitForSignal(name="answer"))
    after = await do(Visit(place=plan.places[1], how="answer"))
    return [before.place, answer, after.place]
