"""The report as data: rows of the table, sentences about the differences, and the limits.

`render` shows it on a terminal and as Markdown, `html` as a page. A figure has its n; an interval
where it has one; "n too small" where the sample cannot carry a claim; an upper bound where the
count is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from comparison import cells
from comparison.arms import find_arm
from comparison.cells import USD
from comparison.measures import CAUSES, KINDS, Measures
from comparison.scene import Paid
from comparison.stats import Summary
from comparison.verdicts import Verdict

FAULTS = {
    "kill": "Recovery after SIGKILL",
    "pause": "Takeover after SIGSTOP",
    "silence": "Takeover after a silent network",
}
CANCELS = {
    "running": "Cancel a run at work",
    "pending": "Cancel before any worker lives",
    "orphan": "Cancel after its worker's death",
}


@dataclass(frozen=True)
class ArmResult:
    """One arm, judged and measured."""

    arm: str
    verdicts: tuple[Verdict, ...]
    measures: Measures
    server: dict[str, str]
    cpu_pressure: float | None = None


@dataclass(frozen=True)
class Row:
    """One line of the side-by-side table: a cell for each arm."""

    section: str
    label: str
    cells: tuple[str, ...]


Cell = Callable[[Measures], str]


def rows(results: Sequence[ArmResult]) -> list[Row]:
    """The table, in the order in which a reader should look at it."""
    measures = [result.measures for result in results]
    lines = [
        *(line for kind in KINDS for line in _recovery(kind, measures)),
        *_cost(measures),
        *(line for case in CANCELS for line in _cancel(case)),
        *_zombies(),
    ]
    found = [Row(s, label, tuple(cell(m) for m in measures)) for s, label, cell in lines]
    return [*found, *_runs(results)]


def _recovery(kind: str, measures: Sequence[Measures]) -> Iterator[tuple[str, str, Cell]]:
    section = FAULTS[kind]
    if not any(m.takeover[kind] for m in measures):
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


def _sizes(m: Measures, kind: str) -> str:
    return cells.sizes(m.takeover[kind], m.never_taken_over(kind))


def _band(arm: str, kind: str) -> str:
    return cells.band(find_arm(arm).predict(kind))


def _cost(measures: Sequence[Measures]) -> Iterator[tuple[str, str, Cell]]:
    section = "Paid twice"
    yield section, "duplicate model calls", lambda m: str(m.duplicates.count("model"))
    yield section, "duplicate tool calls", lambda m: str(m.duplicates.count("tool"))
    for cause in CAUSES:
        must_be_zero = cause == "replayed though recorded"
        if must_be_zero or any(_by_cause(m, cause) for m in measures):
            yield section, f"  {cause}", lambda m, cause=cause: str(_by_cause(m, cause))  # type: ignore[misc] # mypy cannot infer a lambda with a default
    yield section, "tokens: answered–begun", lambda m: cells.bounds(m.duplicates.tokens)
    yield (
        section,
        "dollars: answered–begun",
        lambda m: cells.dollars(m.duplicates.micro_usd, m.duplicates.micro_usd_spent),
    )
    yield section, "calls per step needed", lambda m: f"{m.duplicates.amplification:.4f}"
    yield "Run time", "longer than fault-free: median", lambda m: cells.median(m.penalty)


def _by_cause(m: Measures, cause: str) -> int:
    return sum(m.duplicates.by_cause[cause].values())


def _cancel(case: str) -> Iterator[tuple[str, str, Cell]]:
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


def _zombies() -> Iterator[tuple[str, str, Cell]]:
    section = "Zombies"
    yield section, "back after a takeover", lambda m: str(m.zombies.spared)
    yield section, "calls made", lambda m: str(m.zombies.calls_made)
    yield section, "  refused by the world", lambda m: str(m.zombies.calls_refused)
    yield section, "late records, let through", lambda m: str(m.zombies.late_arrivals)
    yield section, "writes refused, say the workers", lambda m: str(m.zombies.writes_refused)
    yield (
        section,
        "writes accepted, of those tried",
        lambda m: cells.out_of(m.zombies.writes_accepted, m.zombies.writes_tried),
    )


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


# What differs, in words.


def differences(results: Sequence[ArmResult]) -> list[str]:
    """Who came out ahead at what, for each pair of arms of different engines: both ways."""
    pairs = [
        (left, right)
        for i, left in enumerate(results)
        for right in results[i + 1 :]
        if find_arm(left.arm).engine != find_arm(right.arm).engine
    ]
    said = []
    for left, right in pairs:
        who = f"{left.arm} and {right.arm}: " if len(pairs) > 1 else ""
        said += [who + sentence for sentence in _compared(left.measures, right.measures)]
    return said


def _compared(a: Measures, b: Measures) -> Iterator[str]:
    for kind, section in FAULTS.items():
        one, other = a.takeover[kind], b.takeover[kind]
        if one is not None and other is not None:
            ahead = _ahead(a.arm, one, b.arm, other)
            yield f"{section}: {ahead} {_by_settings(a.arm, b.arm, kind)}"
    if a.productive is not None and b.productive is not None:
        yield f"First new step after a kill: {_ahead(a.arm, a.productive, b.arm, b.productive)}"
    yield _fewer("Duplicate calls per orphaned run", a.arm, _per_orphan(a), b.arm, _per_orphan(b))
    zombies = [float(m.zombies.calls_made) for m in (a, b)]
    yield _fewer("Zombie calls made", a.arm, zombies[0], b.arm, zombies[1])
    for case, title in CANCELS.items():
        label = f"{title}, seconds to the run's end"
        yield _fewer(label, a.arm, _ended(a, case), b.arm, _ended(b, case))


def _by_settings(left: str, right: str, kind: str) -> str:
    gap = find_arm(right).middle(kind) - find_arm(left).middle(kind)
    if abs(gap) < 0.005:
        return "The settings alone predict no difference."
    favoured = left if gap > 0 else right
    return f"The settings alone predict {abs(gap):.2f} s in favour of {favoured}."


def _ahead(left: str, one: Summary, right: str, other: Summary) -> str:
    a, b = one.median, other.median
    if a.low <= b.high and b.low <= a.high:
        return f"no difference shown ({left} {a.value:.2f} s, {right} {b.value:.2f} s)."
    winner = left if a.value < b.value else right
    return (
        f"{winner} by {abs(a.value - b.value):.2f} s of the medians; the intervals do not overlap."
    )


def _fewer(label: str, left: str, x: float | None, right: str, y: float | None) -> str:
    if x is None or y is None:
        return f"{label}: not measured on {left if x is None else right}."
    if x == y:
        return f"{label}: {x:.3g} on both."
    (less, low), (more, high) = sorted(((x, left), (y, right)))
    return f"{label}: {less:.3g} on {low}, {more:.3g} on {high}."


def _per_orphan(m: Measures) -> float | None:
    duplicates = m.duplicates.count("model") + m.duplicates.count("tool")
    return duplicates / len(m.recoveries) if m.recoveries else None


def _ended(m: Measures, case: str) -> float | None:
    times = sorted(c.ended for c in m.cancellations if c.case == case and c.ended is not None)
    return cells.middle(times) if times else None


# Words.


def opening(paid: Paid) -> str:
    """The first scene in a few sentences."""
    extra = (paid.micro_usd - paid.micro_usd_needed) / USD
    return (
        f"SELECT then UPDATE, two worker processes, one investigation: {paid.workers} workers "
        f"carried it out, and {paid.model_calls} model calls were paid where "
        f"{paid.model_calls_needed} were needed. That is {paid.tokens:,} tokens instead of "
        f"{paid.tokens_needed:,}, ${paid.micro_usd / USD:.4f} instead of "
        f"${paid.micro_usd_needed / USD:.4f}: ${extra:.4f} for nothing, on one investigation. "
        "Both reports are right; nothing but the bill says that anything went wrong."
    )


NOT_SHOWN = (
    "Throughput: the two servers do not keep their data alike (PostgreSQL with fsync; the Temporal "
    "dev server's SQLite), so no rates are compared.",
    "Behaviour at load: recovery is measured with free capacity left on the surviving workers.",
    "Server restarts, clock skew, stalls of the event loop and overload: not part of this run.",
    "More than one machine: all processes share one host and its clock.",
    "Rare events: a count of zero rules out only what its upper bound says.",
    "INV-TRUST is not judged: from outside, a call sent too late cannot be told from one that was "
    "frozen on its way. Zombie calls are counted instead.",
    "A run cancelled before any worker lives ends at once where the store's own SQL ends it, and "
    "when the first worker comes where workflow code does.",
    "INV-CANCEL counts a call as resumed work when its step was taken over or newly asked for "
    "after the acknowledgement. On Temporal, siblings of a batch that were scheduled before it "
    "may still be handed out until a workflow task has withdrawn them; read as strictly as words "
    "allow, that would fail. The rows `last call begun` show how late such calls came.",
    "INV-SIGNAL, INV-CAP, INV-BUDGET, INV-FAIR and INV-BLAME: judged by the engines' own tests, "
    "not under these faults.",
    "The same schedule again: a seed repeats the experiment, not the interleaving.",
    "The four figures that were chosen beforehand are takeover after a kill, duplicate calls, "
    "zombie writes accepted and cancel to last call; all others are exploratory.",
)
