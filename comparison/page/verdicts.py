"""The outcome in a line, and under it every verdict of every arm."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from comparison.arms import find_arm
from comparison.render import MARKS
from comparison.report import ArmResult
from comparison.verdicts import Outcome

SAID = {
    Outcome.FAIL: "broke",
    Outcome.UNKNOWN: "not decided:",
    Outcome.PASS: "kept",
    Outcome.NOT_PROMISED: "does not promise",
}


def rules(result: ArmResult, outcome: Outcome) -> list[str]:
    """The invariants of one arm with that outcome."""
    return [verdict.invariant for verdict in result.verdicts if verdict.outcome is outcome]


def in_a_line(results: Sequence[ArmResult]) -> str:
    """Who broke which rule, first of all; that nobody did is no more than the checks could see."""
    broke = {r.arm: rules(r, Outcome.FAIL) for r in results if rules(r, Outcome.FAIL)}
    open_ = {r.arm: rules(r, Outcome.UNKNOWN) for r in results if rules(r, Outcome.UNKNOWN)}
    clean = [r.arm for r in results if r.arm not in broke]
    said = [f"{arm} broke {', '.join(names)}." for arm, names in broke.items()]
    if clean:
        said.append(f"Nothing that was promised was seen broken on {', '.join(clean)}.")
    said += [f"Not decided for {arm}: {', '.join(names)}." for arm, names in open_.items()]
    return " ".join(said)


def verdicts(results: Sequence[ArmResult]) -> str:
    """A block for each arm; folded under what came of it where there are more than two."""
    blocks = "".join(_block(result, folded=len(results) > 2) for result in results)
    return f'<div class="verdicts">{blocks}</div>'


def _block(result: ArmResult, *, folded: bool) -> str:
    items = "".join(
        f'<li><span class="{v.outcome}">{MARKS[v.outcome]} {v.invariant}</span> '
        f"{escape(v.rule)}: {escape(v.summary)}</li>"
        for v in result.verdicts
    )
    what = f'<p class="small">{escape(find_arm(result.arm).what)}</p>'
    if not folded:
        return f"<div><h3>{escape(result.arm)}</h3>{what}<ul>{items}</ul></div>"
    title = f"<strong>{escape(result.arm)}</strong> {_counts(result)}"
    return f"<details><summary>{title}</summary>{what}<ul>{items}</ul></details>"


def _counts(result: ArmResult) -> str:
    counted = [(outcome, len(rules(result, outcome))) for outcome in SAID]
    return ", ".join(
        f'<span class="{outcome}">{SAID[outcome]} {n}</span>' for outcome, n in counted if n
    )
