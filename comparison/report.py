"""The report as data: the rows of its table.

`sentences` says what differs and what is not shown; `render` shows everything on a terminal and as
Markdown, `page` as one HTML file. A figure has its n; an interval where it has one; "n too small"
where the sample cannot carry a claim; an upper bound where the count is zero.

Four measures were chosen before anything was measured, and come first. With dozens of rows, some
differ by chance: all the others are there to explore, not to conclude from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from comparison import figures
from comparison.breakers.overload import Overload
from comparison.figures import Figure, Row
from comparison.measures import CAUSES, ORPHANING, Measures
from comparison.meters import LOG, WRITES
from comparison.overload_rows import overload_rows
from comparison.recovery_rows import FAULTS, Line, recovery_rows
from comparison.verdicts import Verdict

__all__ = ["CANCELS", "FAULTS", "ArmResult", "by_cause", "rows"]

CANCELS = {
    "running": "Cancel a run at work",
    "pending": "Cancel before any worker lives",
    "orphan": "Cancel after its worker's death",
    "struck": "Cancel a run, and its worker is struck",
}
NO_CALLS = {
    "last_begin": "no call begun after the request",
    "last_end": "no call ended after the request",
}
PRIMARY = "Chosen beforehand"
ZOMBIE_WRITES = "writes accepted, of those tried"


@dataclass(frozen=True)
class ArmResult:
    """One arm, judged and measured in `blocks` campaigns.

    `cpu_pressure` is the share of their time in which some process waited for a CPU.
    """

    arm: str
    verdicts: tuple[Verdict, ...]
    measures: Measures
    server: dict[str, str]
    cpu_pressure: float | None = None
    overloads: Mapping[str, Overload] = field(default_factory=dict)
    blocks: int = 1


def rows(results: Sequence[ArmResult]) -> list[Row]:
    """The table, in the order in which a reader should look at it."""
    measures = [result.measures for result in results]

    def filled(lines: Iterable[Line]) -> Iterator[Row]:
        for section, label, cell in lines:
            yield Row(section, label, tuple(cell(m) for m in measures))

    return [
        *filled(_primary()),
        *filled(recovery_rows(measures)),
        *filled(_cost(measures)),
        *filled(_run_time(measures)),
        *(row for case in CANCELS for row in filled(_cancel(case, measures))),
        *filled(_zombies()),
        *_runs(results),
        *filled(_overhead()),
        *overload_rows([result.overloads for result in results]),
    ]


def _primary() -> Iterator[Line]:
    yield (
        PRIMARY,
        "takeover after SIGKILL: to the next call of the step",
        lambda m: figures.median(m.takeover["kill"], m.never_taken_over("kill")),
    )
    yield (
        PRIMARY,
        "duplicate calls per orphaned run",
        lambda m: figures.ratio(m.duplicate_calls, len(m.recoveries)),
    )
    yield PRIMARY, f"zombies: {ZOMBIE_WRITES}", _writes_accepted
    yield (
        PRIMARY,
        "cancel a run at work: to the last call begun",
        lambda m: figures.spread(
            [c.last_begin for c in m.cancellations if c.case == "running"], NO_CALLS["last_begin"]
        ),
    )


def _cost(measures: Sequence[Measures]) -> Iterator[Line]:
    section = "Paid twice"
    yield section, "duplicate model calls", lambda m: figures.number(m.duplicates.count("model"))
    yield section, "duplicate tool calls", lambda m: figures.number(m.duplicates.count("tool"))
    yield (
        section,
        "  of both: for a run that a fault had taken from its worker",
        lambda m: figures.number(m.duplicates_of_orphans),
    )
    yield section, "reports handed in twice", lambda m: figures.number(m.duplicates.count("report"))
    for cause in CAUSES:
        must_be_zero = cause == "replayed though recorded"
        if must_be_zero or any(by_cause(m, cause) for m in measures):
            yield section, f"  of all these: {cause}", partial(_caused, cause)
    yield section, "tokens: answered–begun", lambda m: figures.bounds(m.duplicates.tokens)
    yield (
        section,
        "dollars: answered–begun, and all that the runs hit cost",
        lambda m: figures.dollars(m.duplicates.micro_usd, m.duplicates.micro_usd_hit),
    )


def _caused(cause: str, m: Measures) -> Figure:
    return figures.number(by_cause(m, cause))


def by_cause(m: Measures, cause: str) -> int:
    """Duplicate calls of all kinds that one cause explains."""
    return sum(m.duplicates.by_cause[cause].values())


def _run_time(measures: Sequence[Measures]) -> Iterator[Line]:
    section = "Run time of the runs that lost their worker"
    label = "longer than fault-free: median [95 % CI]"
    yield section, label, lambda m: figures.median(m.penalty(*ORPHANING))
    blocks = sorted({block for m in measures for block in m.penalty_by_block})
    for block in blocks if len(blocks) > 1 else ():
        yield (
            section,
            f"  block {block}",
            lambda m, block=block: figures.duration(m.penalty_by_block.get(block)),  # type: ignore[misc] # as above
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
            lambda m, attribute=attribute: figures.spread(  # type: ignore[misc] # as above
                [getattr(c, attribute) for c in m.cancellations if c.case == case],
                NO_CALLS.get(attribute, "none"),
            ),
        )


def _zombies() -> Iterator[Line]:
    section = "Zombies"
    yield section, "back after a takeover", lambda m: figures.number(m.zombies.spared)
    yield section, "calls made", lambda m: figures.number(m.zombies.calls_made)
    yield section, "  refused by the world", lambda m: figures.number(m.zombies.calls_refused)
    yield section, "records that a silence withheld, let through after a takeover", _late_records
    yield section, "  refused by the server", _late_records_refused
    yield (
        section,
        "writes refused, say the workers",
        lambda m: figures.number(m.zombies.writes_refused),
    )
    yield section, ZOMBIE_WRITES, _writes_accepted


def _late_records(m: Measures) -> Figure:
    return (
        Figure("not followed") if m.zombies.unfollowed else figures.number(m.zombies.late_records)
    )


def _late_records_refused(m: Measures) -> Figure:
    return figures.number(m.zombies.late_records_refused)


def _writes_accepted(m: Measures) -> Figure:
    if not m.zombies.writes_tried:
        return Figure("not tried: no late record is known of", n=0)
    return figures.out_of(m.zombies.writes_accepted, m.zombies.writes_tried)


def _runs(results: Sequence[ArmResult]) -> list[Row]:
    ms = [result.measures for result in results]
    takeovers = [
        next(v.times for v in result.verdicts if v.invariant == "INV-LEASE") for result in results
    ]
    alone = [figures.out_of(m.false_takeovers, n) for m, n in zip(ms, takeovers, strict=True)]
    lost = [figures.out_of(m.runs_lost, m.runs_started) for m in ms]
    return [
        Row("Runs", "started", tuple(figures.number(m.runs_started) for m in ms)),
        Row("Runs", "lost", tuple(lost)),
        Row("Runs", "taken from somebody left alone", tuple(alone)),
        Row("Runs", "orphaned: by faults that take all, by others", tuple(map(_orphaned, ms))),
    ]


def _orphaned(m: Measures) -> Figure:
    count, needed = len(m.recoveries), m.orphaned_by_need
    return Figure(f"{needed} + {count - needed} = {count}", count)


def _overhead() -> Iterator[Line]:
    section = "What the engine adds, fault-free (claims, polls, heartbeats, records, ends)"
    yield (
        section,
        "time beside the calls, a step: median, range",
        lambda m: figures.milliseconds(m.overhead.seconds_per_step),
    )
    yield section, "transactions that wrote", lambda m: figures.each(m.overhead.twin.each(WRITES))
    yield section, "write-ahead log", lambda m: figures.kilobytes(m.overhead.twin.each(LOG))
    yield section, "Temporal Cloud actions a run", lambda m: figures.count(m.overhead.twin.billable)
    yield section, "  heartbeats", lambda m: figures.count(m.overhead.twin.heartbeats)
    yield section, "  queries", lambda m: figures.count(m.overhead.twin.queries)
    yield section, "  all else, by the histories", _in_histories
    section = "The same under the faults"
    yield section, "transactions that wrote", lambda m: figures.each(m.overhead.whole.each(WRITES))
    yield section, "write-ahead log", lambda m: figures.kilobytes(m.overhead.whole.each(LOG))
    yield section, "rows written", lambda m: figures.each(m.overhead.whole.rows_written)
    yield (
        section,
        "Temporal Cloud actions a run",
        lambda m: figures.count(m.overhead.whole.billable),
    )


def _in_histories(m: Measures) -> Figure:
    """Counted apart from the server's metric: the three should add up to it."""
    return figures.count(m.overhead.twin.history_actions)
