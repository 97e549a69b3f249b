"""The report as data: the rows of its table.

`sentences` says what differs and what is not shown; `render` shows everything on a terminal and as
Markdown, `page` as one HTML file. A figure has its n; an interval where it has one; "n too small"
where the sample cannot carry a claim; an upper bound where the count is zero.

Four measures were chosen before anything was measured, and come first. With dozens of rows, some
differ by chance: all the others are there to explore, not to conclude from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from comparison import cells
from comparison.arms import find_arm
from comparison.breakers.overload import Overload
from comparison.measures import CAUSES, ORPHANING, OTHERS, Measures
from comparison.meters import LOG, WRITES
from comparison.verdicts import Verdict

FAULTS = {
    "kill": "Recovery after SIGKILL",
    "pause": "Takeover after SIGSTOP",
    "silence": "Takeover after a silent network",
    "mute": "Takeover from a worker that is not heard",
}
CANCELS = {
    "running": "Cancel a run at work",
    "pending": "Cancel before any worker lives",
    "orphan": "Cancel after its worker's death",
    "struck": "Cancel a run, and its worker is struck",
}
PRIMARY = "Chosen beforehand"
ZOMBIE_WRITES = "writes accepted, of those tried"


@dataclass(frozen=True)
class ArmResult:
    """One arm, judged and measured."""

    arm: str
    verdicts: tuple[Verdict, ...]
    measures: Measures
    server: dict[str, str]
    cpu_pressure: float | None = None
    overloads: Mapping[str, Overload] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """One line of the side-by-side table: a cell for each arm."""

    section: str
    label: str
    cells: tuple[str, ...]


Cell = Callable[[Measures], str]
Line = tuple[str, str, Cell]


def rows(results: Sequence[ArmResult]) -> list[Row]:
    """The table, in the order in which a reader should look at it."""
    measures = [result.measures for result in results]

    def filled(lines: Iterable[Line]) -> Iterator[Row]:
        for section, label, cell in lines:
            yield Row(section, label, tuple(cell(m) for m in measures))

    return [
        *filled(_primary()),
        *(row for kind in ORPHANING for row in filled(_recovery(kind, measures))),
        *filled(_between_steps(measures)),
        *filled(_others(measures)),
        *filled(_cost(measures)),
        *filled(_run_time(measures)),
        *(row for case in CANCELS for row in filled(_cancel(case, measures))),
        *filled(_zombies()),
        *_runs(results),
        *filled(_overhead()),
        *_overload(results),
    ]


def _primary() -> Iterator[Line]:
    yield PRIMARY, "takeover after SIGKILL", lambda m: cells.median(m.takeover["kill"])
    yield PRIMARY, "duplicate calls per orphaned run", lambda m: cells.ratio(*orphaned(m))
    yield PRIMARY, f"zombies: {ZOMBIE_WRITES}", _writes_accepted
    yield (
        PRIMARY,
        "cancel a run at work: to the last call begun",
        lambda m: cells.spread([c.last_begin for c in m.cancellations if c.case == "running"]),
    )


def orphaned(m: Measures) -> tuple[int, int]:
    """Duplicate calls, of the model and of tools, and the runs that faults had orphaned."""
    return m.duplicates.count("model") + m.duplicates.count("tool"), len(m.recoveries)


def _recovery(kind: str, measures: Sequence[Measures]) -> Iterator[Line]:
    section = FAULTS[kind]
    if not any(m.after(kind) for m in measures):
        return
    yield section, "taken over: median [95 % CI]", lambda m: cells.median(m.takeover[kind])
    yield section, "longest", lambda m: cells.longest(m.takeover[kind])
    yield section, "p95", lambda m: cells.p95(m.takeover[kind])
    yield (
        section,
        "runs, of faults",
        lambda m: cells.sizes(m.takeover[kind], m.never_taken_over(kind)),
    )
    yield section, "predicted from the settings", lambda m: _band(m.arm, kind)
    yield section, "inside of that", lambda m: "{} of {}".format(*m.in_band(kind))
    if kind == "kill":
        yield section, "first new step: median [95 % CI]", lambda m: cells.median(m.productive)


def _between_steps(measures: Sequence[Measures]) -> Iterator[Line]:
    """Where no step was under way: another law holds there, so they are not mixed in above."""
    for kind in ORPHANING:
        name = f"{kind}, between steps"
        if any(m.after(name) for m in measures):
            yield (
                "Taken over between two steps: median [95 % CI]",
                f"after a {kind}",
                lambda m, name=name: cells.median(m.waits(name)),  # type: ignore[misc] # mypy cannot infer a lambda with a default
            )


def _others(measures: Sequence[Measures]) -> Iterator[Line]:
    """After these a worker may keep its runs; the rule is only that they end well."""
    section = "Faults after which a worker may keep its runs"
    for kind in OTHERS:
        if any(m.hit_by(kind) for m in measures):
            yield section, f"{kind}: runs taken over, of those hit", partial(_taken, kind)
            yield (
                section,
                "  longer than fault-free: median [95 % CI]",
                lambda m, kind=kind: cells.median(m.penalty(kind)),  # type: ignore[misc] # as above
            )


def _taken(kind: str, m: Measures) -> str:
    hit = m.hit_by(kind)
    return f"{sum(h.taken for h in hit)} of {len(hit)}" if hit else "not brought"


def _band(arm: str, kind: str) -> str:
    return cells.band(find_arm(arm).predict(kind))


def _cost(measures: Sequence[Measures]) -> Iterator[Line]:
    section = "Paid twice"
    yield section, "duplicate model calls", lambda m: str(m.duplicates.count("model"))
    yield section, "duplicate tool calls", lambda m: str(m.duplicates.count("tool"))
    for cause in CAUSES:
        must_be_zero = cause == "replayed though recorded"
        if must_be_zero or any(by_cause(m, cause) for m in measures):
            yield section, f"  {cause}", lambda m, cause=cause: str(by_cause(m, cause))  # type: ignore[misc] # as above
    yield section, "tokens: answered–begun", lambda m: cells.bounds(m.duplicates.tokens)
    yield (
        section,
        "dollars: answered–begun",
        lambda m: cells.dollars(m.duplicates.micro_usd, m.duplicates.micro_usd_spent),
    )
    yield section, "calls per step needed", lambda m: f"{m.duplicates.amplification:.4f}"


def by_cause(m: Measures, cause: str) -> int:
    """Duplicate calls of all kinds that one cause explains."""
    return sum(m.duplicates.by_cause[cause].values())


def _run_time(measures: Sequence[Measures]) -> Iterator[Line]:
    section = "Run time of the runs that lost their worker"
    label = "longer than fault-free: median [95 % CI]"
    yield section, label, lambda m: cells.median(m.penalty(*ORPHANING))
    blocks = sorted({block for m in measures for block in m.penalty_by_block})
    for block in blocks if len(blocks) > 1 else ():
        yield (
            section,
            f"  block {block}",
            lambda m, block=block: cells.duration(m.penalty_by_block.get(block)),  # type: ignore[misc] # as above
        )


def _cancel(case: str, measures: Sequence[Measures]) -> Iterator[Line]:
    if not any(c.case == case for m in measures for c in m.cancellations):
        return
    wanted = [("acknowledged", "acknowledged"), ("run ended", "ended")]
    if case != "pending":
        wanted += [("last call begun", "last_begin"), ("last call ended", "last_end")]
    for label, attribute in wanted:
        yield (
            CANCELS[case],
            label,
            lambda m, attribute=attribute: cells.spread(  # type: ignore[misc] # as above
                [getattr(c, attribute) for c in m.cancellations if c.case == case]
            ),
        )


def _zombies() -> Iterator[Line]:
    section = "Zombies"
    yield section, "back after a takeover", lambda m: str(m.zombies.spared)
    yield section, "calls made", lambda m: str(m.zombies.calls_made)
    yield section, "  refused by the world", lambda m: str(m.zombies.calls_refused)
    yield section, "late records, let through", lambda m: str(m.zombies.late_arrivals)
    yield section, "writes refused, say the workers", lambda m: str(m.zombies.writes_refused)
    yield section, ZOMBIE_WRITES, _writes_accepted


def _writes_accepted(m: Measures) -> str:
    return cells.out_of(m.zombies.writes_accepted, m.zombies.writes_tried)


def _runs(results: Sequence[ArmResult]) -> list[Row]:
    ms = [result.measures for result in results]
    takeovers = [
        next(v.times for v in result.verdicts if v.invariant == "INV-LEASE") for result in results
    ]
    alone = [cells.out_of(m.false_takeovers, n) for m, n in zip(ms, takeovers, strict=True)]
    lost = [cells.out_of(m.runs_lost, m.runs_started) for m in ms]
    return [
        Row("Runs", "started", tuple(str(m.runs_started) for m in ms)),
        Row("Runs", "lost", tuple(lost)),
        Row("Runs", "taken from somebody left alone", tuple(alone)),
    ]


def _overhead() -> Iterator[Line]:
    section = "What the engine adds, fault-free (claims, polls, heartbeats, records, ends)"
    yield (
        section,
        "time beside the calls, a step: median, range",
        lambda m: cells.milliseconds(m.overhead.seconds_per_step),
    )
    yield section, "transactions that wrote", lambda m: cells.each(m.overhead.twin.each(WRITES))
    yield section, "write-ahead log", lambda m: cells.kilobytes(m.overhead.twin.each(LOG))
    yield section, "Temporal Cloud actions a run", lambda m: cells.count(m.overhead.twin.billable)
    yield section, "  heartbeats", lambda m: cells.count(m.overhead.twin.heartbeats)
    yield section, "  queries", lambda m: cells.count(m.overhead.twin.queries)
    yield section, "  all else, by the histories", _in_histories
    section = "The same under the faults"
    yield section, "transactions that wrote", lambda m: cells.each(m.overhead.whole.each(WRITES))
    yield section, "write-ahead log", lambda m: cells.kilobytes(m.overhead.whole.each(LOG))
    yield section, "rows written", lambda m: cells.each(m.overhead.whole.rows_written)
    yield section, "Temporal Cloud actions a run", lambda m: cells.count(m.overhead.whole.billable)


def _in_histories(m: Measures) -> str:
    """Counted apart from the server's metric: the three should add up to it."""
    return cells.count(m.overhead.twin.history_actions)


def _overload(results: Sequence[ArmResult]) -> Iterator[Row]:
    """Two arrive for each that ends. Limits bound what is at work; nobody is sent away."""
    section = "Overload, without and within limits"
    figures: dict[str, Callable[[Overload], str]] = {
        "most model calls at once": lambda o: str(o.most_model_calls_at_once),
        "most runs at work": lambda o: str(o.most_runs_at_work),
        "queue age, first quarter and last": lambda o: (
            f"{o.age_first_quarter:.1f} s, {o.age_last_quarter:.1f} s"
        ),
        "spent": lambda o: f"${o.micro_usd / cells.USD:.3f}",
        "spent a second": lambda o: f"${o.micro_usd_per_second / cells.USD:.4f}",
    }
    if not any(result.overloads for result in results):
        return
    for label, said in figures.items():
        for name in ("without", "within"):
            filled = tuple(
                said(result.overloads[name]) if name in result.overloads else "not measured"
                for result in results
            )
            yield Row(section, f"{label}, {name}", filled)
