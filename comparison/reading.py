"""How far the table can be read: whether its arms met the same machine.

Arms run one after the other on a machine that does other things too. With one block, which arm was
measured and when it was cannot be told apart; and where the CPUs were wanted more, every wait is
longer, whoever's it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from comparison.report import ArmResult

ALIKE = 0.10
"""Machines are called equally busy if their shares of time do not differ by more than this."""
RULE = (
    "The rule: a difference of durations is called shown only if both arms were measured in more "
    "than one block, and some process waited for a CPU in shares of the time that are known and "
    f"not more than {100 * ALIKE:.0f} percentage points apart."
)


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
    unknown = [result.arm for result in results if result.cpu_pressure is None]
    if unknown:
        yield f"How busy the machine was is not known for {', '.join(unknown)}."
    once = [result.arm for result in results if result.blocks == 1]
    if once:
        yield (
            f"One block only for {', '.join(once)}: when an arm was measured and which arm it was "
            "cannot be told apart."
        )


def doubt(a: ArmResult, b: ArmResult) -> str | None:
    """Why no duration of the two is called different, as a clause; None when it may be."""
    if 1 in (a.blocks, b.blocks):
        return "there is one block only"
    if a.cpu_pressure is None or b.cpu_pressure is None:
        return "how busy the machine was is not known"
    if abs(a.cpu_pressure - b.cpu_pressure) > ALIKE:
        return (
            f"some process waited for a CPU in {a.cpu_pressure:.0%} of the time on {a.arm} and in "
            f"{b.cpu_pressure:.0%} on {b.arm}"
        )
    return None
