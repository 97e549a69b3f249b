"""The rows of the table that show how long runs waited for somebody else to go on with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from comparison import figures
from comparison.arms import find_arm
from comparison.figures import Figure
from comparison.measures import ORPHANING, OTHERS, Measures

FAULTS = {
    "kill": "Recovery after SIGKILL",
    "pause": "Takeover after SIGSTOP",
    "silence": "Takeover after a silent network",
    "mute": "Takeover from a worker that is not heard",
}
Cell = Callable[[Measures], Figure]
Line = tuple[str, str, Cell]
"""A row to be filled: its section, its label, and what finds the cell of an arm."""


def recovery_rows(measures: Sequence[Measures]) -> Iterator[Line]:
    """Every kind of fault after which a run of any arm changed hands has its rows."""
    for kind in ORPHANING:
        yield from _recovery(kind, measures)
    yield from _between_steps(measures)
    yield from _others(measures)


def _recovery(kind: str, measures: Sequence[Measures]) -> Iterator[Line]:
    section = FAULTS[kind]
    if not any(m.after(kind) for m in measures):
        return
    yield (
        section,
        "changed hands: median [95 % CI]",
        lambda m: figures.median(m.changed_hands(kind), m.never_taken_over(kind)),
    )
    yield section, "  predicted from the settings", lambda m: _band(m.arm, kind)
    yield section, "  inside of that", partial(_in_band, kind)
    yield (
        section,
        "next call of the step: median [95 % CI]",
        lambda m: figures.median(m.takeover[kind], m.never_taken_over(kind)),
    )
    yield section, "  longest", lambda m: figures.longest(m.takeover[kind])
    yield section, "  p95", lambda m: figures.p95(m.takeover[kind])
    yield (
        section,
        "runs, of faults",
        lambda m: figures.sizes(m.takeover[kind], len(m.never_taken_over(kind))),
    )
    if any(m.shared(kind) for m in measures):
        yield (
            section,
            "  of these, a second worker had been at them all along",
            lambda m: figures.number(m.shared(kind)),
        )
    if kind == "kill":
        yield (
            section,
            "new step by anybody else, a sibling's too: median [95 % CI]",
            lambda m: figures.median(m.productive, m.never_taken_over(kind)),
        )


def _in_band(kind: str, m: Measures) -> Figure:
    inside, n = m.in_band(kind)
    return Figure(f"{inside} of {n}", inside, n=n)


def _between_steps(measures: Sequence[Measures]) -> Iterator[Line]:
    """Where no step was under way: another law holds there, so they are not mixed in above."""
    section = "Taken over between two steps"
    for kind in (*ORPHANING, *OTHERS):
        name = f"{kind}, between steps"
        if any(m.after(name) for m in measures):
            yield from _waits(section, f"after a {kind}: median [95 % CI]", name)


def _others(measures: Sequence[Measures]) -> Iterator[Line]:
    """After these a worker may keep its runs; the rule is only that they end well."""
    section = "Faults after which a worker may keep its runs"
    for kind in OTHERS:
        if not any(m.hit_by(kind) for m in measures):
            continue
        yield section, f"{kind}: runs taken over, of those hit", partial(_taken, kind)
        if any(m.after(kind) for m in measures):
            label = "  next call of the step, where taken over: median [95 % CI]"
            yield from _waits(section, label, kind)
        yield (
            section,
            "  longer than fault-free: median [95 % CI]",
            lambda m, kind=kind: figures.median(m.penalty(kind)),  # type: ignore[misc] # mypy cannot infer a lambda with a default
        )


def _waits(section: str, label: str, kind: str) -> Iterator[Line]:
    yield section, label, lambda m: figures.median(m.waits(kind), m.never_taken_over(kind))
    yield section, "  longest of these", lambda m: figures.longest(m.waits(kind))
    yield (
        section,
        "  runs, of faults",
        lambda m: figures.sizes(m.waits(kind), len(m.never_taken_over(kind))),
    )


def _taken(kind: str, m: Measures) -> Figure:
    hit, taken = m.hit_by(kind), sum(h.taken for h in m.hit_by(kind))
    return Figure(f"{taken} of {len(hit)}", taken, n=len(hit)) if hit else Figure("not brought")


def _band(arm: str, kind: str) -> Figure:
    return figures.band(find_arm(arm).predict(kind))
