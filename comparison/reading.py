"""How far the table can be read: whether its arms met the same machine, and what its terms mean.

Arms run one after the other on a machine that does other things too. With one block, which arm was
measured and when it was cannot be told apart; and where the CPUs were wanted more, every wait is
longer, whoever's it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from comparison.arms import find_arm
from comparison.report import ArmResult

ALIKE = 0.10
"""Machines are called equally busy if their shares of time do not differ by more than this."""
FULL = 0.90
"""Beyond this the share of time no longer tells how many processes waited."""
RULE = (
    "The rule: a difference of durations is called shown only if both arms were measured in more "
    "than one block, and some process waited for a CPU in shares of the time that are known, at "
    f"most {FULL:.0%} and not more than {100 * ALIKE:.0f} percentage points apart."
)

KEPT = (
    "After faults that need not cost a worker its runs, only those that were taken over have a "
    "wait. What the fault cost all that it hit, taken over or kept, is `longer than fault-free`."
)
ORPHANED = (
    "Duplicate calls per orphaned run are all duplicate calls of models and tools, also those for "
    "runs that kept their worker, over all runs that a fault took from theirs. INV-ORPHAN counts "
    "fewer: only those whose fault had to take them, since of the others it demands nothing."
)
STOPS = {
    "hand_rolled": "its workers trust a lease by their own clock, until shortly before it ends, "
    "and drop what they would have to record after that."
}
"""By engine, why a worker that lost its work seldom comes to write late."""


def warnings(results: Sequence[ArmResult]) -> list[str]:
    """What forbids to compare durations of these arms, most of all first; then the rule for it."""
    found = list(_warnings(results)) if len(results) > 1 else []
    return [*found, RULE] if found else []


def _warnings(results: Sequence[ArmResult]) -> Iterator[str]:
    known = {r.arm: r.cpu_pressure for r in results if r.cpu_pressure is not None}
    if known and max(known.values()) - min(known.values()) > ALIKE:
        shares = ", ".join(f"{share:.0%} on {arm}" for arm, share in known.items())
        yield (
            "The arms did not meet the same machine: of the time, some process waited for a CPU in "
            f"{shares}. Where that is more, every duration is longer, whatever the engine. It "
            "counts the engine's own processes and everybody else's alike."
        )
    starved = [arm for arm, share in known.items() if share > FULL]
    if starved:
        yield (
            f"Some process waited for a CPU in more than {FULL:.0%} of the time on "
            f"{', '.join(starved)}: so much that how many waited is not known, and no duration of "
            "theirs is the engine's alone."
        )
    unknown = [result.arm for result in results if result.cpu_pressure is None]
    if unknown:
        yield f"How busy the machine was is not known for {', '.join(unknown)}."
    once = [result.arm for result in results if result.blocks == 1]
    if once:
        yield (
            f"One block only for {', '.join(once)}: when an arm was measured and which arm it was "
            "cannot be told apart."
        )


def terms(results: Sequence[ArmResult]) -> list[str]:
    """What some figures count that stand side by side and are not the same."""
    return [KEPT, ORPHANED, *_terms_of_writes(results)]


def _terms_of_writes(results: Sequence[ArmResult]) -> Iterator[str]:
    yield (
        "A contested write, of INV-FENCE, is the record of a step that a second owner called for "
        "though its first lived on, or a late write that was refused: there an older owner's "
        "record could have been the one that was accepted."
    )
    for engine, why in STOPS.items():
        never = [
            result.arm
            for result in results
            if find_arm(result.arm).engine == engine
            and result.measures.zombies.spared
            and not result.measures.zombies.writes_tried
        ]
        if never:
            yield (
                f"No late write was tried on {' or '.join(never)}: {why} So nothing here shows "
                "that its server would have refused one."
            )


def doubt(a: ArmResult, b: ArmResult) -> str | None:
    """Why no duration of the two is called different, as a clause; None when it may be."""
    if 1 in (a.blocks, b.blocks):
        return "there is one block only"
    if a.cpu_pressure is None or b.cpu_pressure is None:
        return "how busy the machine was is not known"
    if max(a.cpu_pressure, b.cpu_pressure) > FULL or abs(a.cpu_pressure - b.cpu_pressure) > ALIKE:
        return (
            f"some process waited for a CPU in {a.cpu_pressure:.0%} of the time on {a.arm} and in "
            f"{b.cpu_pressure:.0%} on {b.arm}"
        )
    return None
