"""The ladder on a terminal: what breaks without each idea, how often, and at what cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from comparison.ladder.main import Climbed, FormName, Tried
from comparison.verdicts import Outcome


def lines(climbed: Sequence[Climbed]) -> Iterator[str]:
    """The report, line by line."""
    for one in climbed:
        rung = one.rung
        invariant = one.tried[0].verdict.invariant
        yield f"{rung.number:>2}  {rung.title}  [{invariant}]"
        yield from _form("without", one, "broken", rung.breaks, Outcome.FAIL)
        yield from _form("with", one, "fixed", rung.holds, Outcome.PASS)
        if one.defect:
            yield f"    THIS RUNG DOES NOT STAND: {one.defect}"
        yield ""
    fallen = [str(one.rung.number) for one in climbed if one.defect]
    if fallen:
        yield f"{len(fallen)} of {len(climbed)} rungs do not stand: {', '.join(fallen)}"
    else:
        yield (
            f"all {len(climbed)} rungs stand: every broken form was convicted by its check, "
            "no fixed form by any"
        )


def _form(
    word: str, one: Climbed, form: FormName, meaning: str, expected: Outcome
) -> Iterator[str]:
    tried = one.of(form)
    hits = sum(t.verdict.outcome is expected for t in tried)
    said = "convicted" if expected is Outcome.FAIL else "passed"
    yield f"    {word:<9}{meaning}"
    yield f"             {said} {hits} of {len(tried)} times; {_cost(tried)}"
    if expected is Outcome.FAIL:
        yield f"             seen: {tried[0].verdict.detail}"
        also = sorted(
            {name for t in tried for name in t.convicted_by} - {tried[0].verdict.invariant}
        )
        if also:
            yield f"             also convicted by {', '.join(also)}"


def _cost(tried: Sequence[Tried]) -> str:
    """What these trials cost together."""
    calls = sum(t.bill.calls for t in tried)
    paid = sum(t.bill.micro_usd_in_all for t in tried)
    again = sum(t.bill.micro_usd for t in tried)
    tokens = sum(t.bill.tokens for t in tried)
    parts = ["nothing was paid for twice"]
    if calls:
        parts = [f"paid again: {calls} calls, {tokens:,} tokens, {_usd(again)}"]
    if stranded := sum(t.stranded for t in tried):
        parts.append(f"stranded: {stranded} run(s)")
    if refused := sum(t.refused_starts for t in tried):
        parts.append(f"refused at the door: {refused}")
    return "; ".join([*parts, f"paid in all: {_usd(paid)}"])


def _usd(micro: int) -> str:
    return f"${micro / 1e6:.4f}"
