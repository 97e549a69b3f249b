"""The report in words: the first scene, what differs, and what is not shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median

from comparison import cells
from comparison.arms import find_arm
from comparison.cells import USD
from comparison.kinds import KINDS
from comparison.measures import OTHERS, Measures
from comparison.meters import WRITES
from comparison.reading import doubt
from comparison.report import CANCELS, FAULTS, ArmResult
from comparison.scene import Paid
from comparison.stats import FEWEST, Summary, log_rank, sign_test

LEVEL = 0.05
"""Below this the log-rank test is read as a difference. It is corrected for nothing."""


def differences(results: Sequence[ArmResult]) -> list[str]:
    """What `pairs` says, one after the other; of several pairs, each line says which it is of."""
    found = pairs(results)
    return [
        f"{who}: {sentence}" if len(found) > 1 else sentence
        for who, sentences in found.items()
        for sentence in sentences
    ]


def pairs(results: Sequence[ArmResult]) -> dict[str, list[str]]:
    """Who came out ahead at what, for each pair of arms of different engines: both ways."""
    return {
        f"{left.arm} and {right.arm}": list(_compared(left, right))
        for i, left in enumerate(results)
        for right in results[i + 1 :]
        if find_arm(left.arm).engine != find_arm(right.arm).engine
    }


def not_shown(results: Sequence[ArmResult]) -> list[str]:
    """The limits of what was measured; first of all, what was not brought to any arm."""
    brought = {kind for result in results for kind in result.measures.brought}
    missing = [f"{kind} ({what.what})" for kind, what in KINDS.items() if kind not in brought]
    said = [f"Faults that were not part of this run: {'; '.join(missing)}."] if missing else []
    if not any(result.overloads for result in results):
        said.append(
            "Overload: measured by `two-workers compare-full` and `two-workers faults --overload`."
        )
    if any(result.measures.zombies.unfollowed for result in results):
        said.append(
            "Whether a former owner's record came late: this evidence has the bytes that a silence "
            "withheld, not what was in them; it may be heartbeats alone."
        )
    return said + list(NOT_SHOWN)


def _compared(left: ArmResult, right: ArmResult) -> Iterator[str]:
    a, b, why_not = left.measures, right.measures, doubt(left, right)
    for kind, section in FAULTS.items():
        one, other = a.takeover[kind], b.takeover[kind]
        if one is not None and other is not None:
            ahead = _ahead(a.arm, one, b.arm, other, why_not)
            test, settings = _log_rank(a, b, kind, why_not), _by_settings(a.arm, b.arm, kind)
            yield f"{section}, to the next call of the step: run by run, {ahead} {test} {settings}"
    if a.productive is not None and b.productive is not None:
        ahead = _ahead(a.arm, a.productive, b.arm, b.productive, why_not)
        yield f"New step by anybody else after a kill: {ahead}"
    yield from _taken_from_the_living(a, b, why_not)
    yield from _paired(a, b, why_not)
    for label, figure in _figures():
        x, y = figure(a), figure(b)
        if x is not None or y is not None:
            yield _fewer(label, a.arm, x, b.arm, y)


def _taken_from_the_living(a: Measures, b: Measures, why_not: str | None) -> Iterator[str]:
    """After faults that need not cost a worker its runs: how many they cost it, how long for."""
    for kind in OTHERS:
        hit = [(m, m.hit_by(kind)) for m in (a, b)]
        if not all(runs for _, runs in hit) or not any(h.taken for _, runs in hit for h in runs):
            continue
        taken = " and ".join(
            f"{sum(h.taken for h in runs)} of {len(runs)} on {m.arm}" for m, runs in hit
        )
        one, other = a.waits(kind), b.waits(kind)
        said = f"Faults of kind {kind}, runs taken over of those hit: {taken}"
        if one is None or other is None:
            yield f"{said}."
        else:
            yield f"{said}; run by run of these, {_ahead(a.arm, one, b.arm, other, why_not)}"


def _figures() -> Iterator[tuple[str, Callable[[Measures], float | None]]]:
    """What is compared by one number on each arm, without an interval."""
    yield "Duplicate calls per orphaned run", lambda m: m.duplicates_per_orphan
    yield "Zombie calls made", lambda m: float(m.zombies.calls_made)
    for case, title in CANCELS.items():
        yield f"{title}, seconds to the run's end", partial(_ended, case)
    yield "Seconds beside the calls, a fault-free step", _beside
    yield "Transactions that wrote, a fault-free run", _writes


def _log_rank(a: Measures, b: Measures, kind: str, why_not: str | None) -> str:
    """The test that knows censored waits; one wait a fault, since its runs are not independent."""
    one, other = a.until_all_had_an_owner(kind), b.until_all_had_an_owner(kind)
    p = log_rank(one, other)
    said = f"n too small (< {FEWEST})" if p is None else cells.p(p)
    if p is not None and p >= LEVEL:
        said += ", no difference shown"
    elif p is not None:
        said += ", a difference is shown" if why_not is None else _not_read(why_not)
    return (
        "Fault by fault, each until its last orphan is taken over (log-rank, "
        f"{len(one)} and {len(other)} faults): {said}."
    )


def _not_read(why_not: str) -> str:
    return f", not read as a difference: {why_not}"


def _paired(a: Measures, b: Measures, why_not: str | None) -> Iterator[str]:
    """Block by block: the same questions and faults on both arms."""
    one, other = a.penalty_by_block, b.penalty_by_block
    blocks = [block for block in one if block in other]
    if len(blocks) > 1:
        gaps = [one[block] - other[block] for block in blocks]
        p = sign_test(gaps)
        unread = _not_read(why_not) if why_not is not None and p < LEVEL else ""
        yield (
            f"Run time lost to faults, paired over {len(blocks)} blocks: longer on {a.arm} in "
            f"{sum(gap > 0 for gap in gaps)}, on {b.arm} in {sum(gap < 0 for gap in gaps)}; median "
            f"difference {median(gaps):+.2f} s; sign test {cells.p(p)}{unread}."
        )


def _by_settings(left: str, right: str, kind: str) -> str:
    gap = find_arm(right).middle(kind) - find_arm(left).middle(kind)
    if abs(gap) < 0.005:
        return "The settings alone predict no difference."
    favoured = left if gap > 0 else right
    return f"The settings alone predict {abs(gap):.2f} s in favour of {favoured}."


def _ahead(left: str, one: Summary, right: str, other: Summary, why_not: str | None) -> str:
    a, b = one.median, other.median
    if 1 in (one.blocks, other.blocks):
        return (
            f"{left} {a.value:.2f} s and {right} {b.value:.2f} s in the median; one fault alone "
            "has no interval."
        )
    if a.low <= b.high and b.low <= a.high:
        return (
            f"the intervals of the medians overlap, {left} {a.value:.2f} s and {right} "
            f"{b.value:.2f} s."
        )
    winner = left if a.value < b.value else right
    gap = abs(a.value - b.value)
    but = "" if why_not is None else f", but {why_not}"
    return f"{winner} sooner by {gap:.2f} s between the medians; the intervals do not overlap{but}."


def _fewer(label: str, left: str, x: float | None, right: str, y: float | None) -> str:
    if x is None or y is None:
        return f"{label}: not measured on {left if x is None else right}."
    if x == y:
        return f"{label}: {x:.3g} on both."
    (less, low), (more, high) = sorted(((x, left), (y, right)))
    return f"{label}: {less:.3g} on {low}, {more:.3g} on {high}."


def _ended(case: str, m: Measures) -> float | None:
    times = [c.ended for c in m.cancellations if c.case == case and c.ended is not None]
    return median(times) if times else None


def _beside(m: Measures) -> float | None:
    seconds = m.overhead.seconds_per_step
    return median(seconds) if seconds else None


def _writes(m: Measures) -> float | None:
    each = m.overhead.twin.each(WRITES)
    return None if each is None else each[0]


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
    "More than one machine: all processes share one host and its clock.",
    "Rare events: a count of zero rules out only what its upper bound says.",
    "INV-TRUST, to the last moment: from outside, a call that leaves just as a worker wakes cannot "
    "be told from one that was frozen on its way. Such calls are counted, not judged.",
    "A run cancelled before any worker lives ends at once where the store's own SQL ends it, and "
    "when the first worker comes where workflow code does.",
    "INV-CANCEL counts a call as resumed work when its step was taken over or newly asked for "
    "after the acknowledgement. On Temporal, siblings of a batch that were scheduled before it "
    "may still be handed out until a workflow task has withdrawn them; read as strictly as words "
    "allow, that would fail. The rows `last call begun` show how late such calls came.",
    "INV-SIGNAL, INV-CAP, INV-BUDGET, INV-FAIR and INV-BLAME at scale: they are judged by a crowd "
    "of twenty runs beside each campaign, with workers of its own, of which one is paused and "
    "three are killed. It comes after the fault-free twin. Its calls are in no figure above; its "
    "processor time is in those under faults.",
    "What a takeover waits for: a run changes hands before its step is called again; in a "
    "batch, another worker may begin a new step of the run before either.",
    "Small losses of run time: a run and its fault-free twin met the machine at different moments, "
    "and a negative figure says that this weighed more than the fault.",
    "The same schedule again: a seed repeats the experiment, not the interleaving.",
    "Only the four measures under `Chosen beforehand` were; all others are there to explore, and "
    "no test is corrected for their number.",
    "Temporal Cloud's bill beyond actions: storage, and what its own counting does otherwise than "
    "the server's `action` metric. Queries and heartbeats are in the metric, not in the histories.",
    "What a store's writes cost: a transaction of Temporal's SQLite and one of PostgreSQL are "
    "counted alike, not weighed.",
)
