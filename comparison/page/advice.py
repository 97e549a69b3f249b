"""What it means for you: the reader's own volume turns the measured figures into a year's money.

The measured figures go into the page as JSON; a small script does the arithmetic, so that the
reader can change every assumption. Prices come with their source and date (`prices`); what has none
is a placeholder, and the page says so. An arm that broke a rule has its sums, and is not
recommended, however cheap it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib.resources import files
from statistics import mean
from typing import Any

from comparison.arms import TIMEOUT, Arm, find_arm
from comparison.measures import Measures
from comparison.page.verdicts import rules
from comparison.prices import Input, inputs
from comparison.reading import warnings
from comparison.report import ArmResult
from comparison.verdicts import Outcome

THROTTLE = 0.8
"""Of a heartbeat timeout: the interval at which Temporal's SDK sends heartbeats by default."""


def figures(measures: Measures) -> dict[str, Any]:
    """What one arm brings into the calculation, for each orphaned run and for each run.

    The expected cost of many deaths is a mean, not a median: a few long waits count in it. A run
    stands still until somebody has it; that is measured on the run itself, and so not blurred by
    how fast the machine was when its fault-free twin ran. One that nobody took over has stood still
    for as long as it was watched, at least.

    What was not measured is predicted by the law of `Arm.predict`: `expected` with the arm's own
    settings; `beyond` is what it adds to any other timeout less half of the heartbeats' interval.
    """
    orphaned = max(len(measures.recoveries), 1)
    twin, runs = measures.overhead.twin, measures.overhead.runs
    arm = find_arm(measures.arm)
    stood = [r.watched if r.takeover is None else r.takeover for r in measures.after("kill")]
    return {
        "arm": arm.name,
        "engine": arm.engine,
        "gap": arm.gap,
        "answered": _tokens(measures, 0, orphaned),
        "begun": _tokens(measures, 1, orphaned),
        "stood": mean(stood) if stood else None,
        "expected": arm.middle("kill"),
        "beyond": arm.middle("kill") - (arm.timeout - arm.gap / 2),
        "throttle": THROTTLE,
        "shortest": TIMEOUT,
        "cluster_only": _sets_the_server(arm),
        "never": len(measures.never_taken_over("kill")),
        "actions": (twin.billable or 0.0) - (twin.heartbeats or 0.0),
        "heartbeats": twin.heartbeats or 0.0,
        "steps": twin.steps / twin.runs if twin.runs else 0.0,
        "calling": mean(run.calling for run in runs) if runs else 0.0,
    }


def _tokens(measures: Measures, bound: int, orphaned: int) -> dict[str, float]:
    """Tokens paid twice for each orphaned run: of the answers that arrived, or of all begun."""
    received = measures.duplicates.tokens_received[bound]
    sent = measures.duplicates.tokens[bound] - received
    return {"sent": sent / orphaned, "received": received / orphaned}


def advice(results: Sequence[ArmResult]) -> str:
    """The section with its inputs, its table and its script."""
    found = [
        {**figures(result.measures), "broke": rules(result, Outcome.FAIL)} for result in results
    ]
    data = json.dumps(found).replace("<", "\\u003c")
    script = files("comparison.page").joinpath("advice.js").read_text()
    own = [entry for entry in inputs() if entry.source is None]
    priced = [entry for entry in inputs() if entry.source is not None]
    return f"""
<p>Change every number to your own. Measured in this report, and used{_of_the_machine(results)}:</p>
{_list(map(_measured, found))}
<form id="inputs">
{_group("Only you know these: what is filled in are placeholders, not findings", own)}
{_group("Prices, each of the day on which it was read", priced)}
</form>
<p id="unread" class="FAIL" role="status"></p>
<p class="small">Recovery, where it is predicted: a worker's death is noticed when the heartbeat
timeout ends. With other heartbeats than those of this test, Temporal's arms are given the timeout
of which your interval is {THROTTLE:g}, as the SDK would have it (but none shorter than the
{TIMEOUT:g} s tested), and what the settings then predict on average. A store of your own is taken
as it was tested: nobody bills its heartbeats. An arm on which no worker was killed is predicted,
too.</p>
<div class="wide"><table class="figures"><thead><tr><th>a year with</th><th>duplicates</th>
<th>recovery</th><th>looking after it</th><th>bill</th><th>together</th></tr></thead>
<tbody id="year"></tbody></table></div>
<p id="advice" class="advice"></p>
<p id="change"></p>
<p id="heartbeats"></p>
{_list(_kept(results))}
<p>What would change it beyond the sum: a table commits together with your own data and needs no
second system; Temporal brings timers, signals, versioning and an interface that a store of your
own would have to grow, and people elsewhere who are on call for it. Whether duplicates and recovery
decide anything at your volume, the first two columns say beside the others.</p>
<script type="application/json" id="figures">{data}</script>
<script>{script}</script>
"""


def _kept(results: Sequence[ArmResult]) -> Iterator[str]:
    """Who is not recommended and why, and what else is to be known before one is chosen."""
    for result in results:
        if broke := rules(result, Outcome.FAIL):
            yield f"{result.arm} broke {', '.join(broke)}: not recommended, whatever it costs."
    for result in results:
        if _sets_the_server(find_arm(result.arm)):
            yield (
                f"{result.arm} changes settings of the server itself, which nobody can on Temporal "
                "Cloud: it is reckoned for a cluster of your own alone."
            )
    for result in results:
        if doubtful := rules(result, Outcome.UNKNOWN):
            yield f"Not decided here, whether {result.arm} keeps {', '.join(doubtful)}."
        if never := rules(result, Outcome.NOT_PROMISED):
            yield f"{result.arm} does not promise {', '.join(never)}."


def _sets_the_server(arm: Arm) -> bool:
    return arm.env.get("TEMPORAL_VERSION_ARM") == "server"


def _group(legend: str, entries: Sequence[Input]) -> str:
    return f"<fieldset><legend>{legend}</legend>{''.join(map(_field, entries))}</fieldset>"


def _field(entry: Input) -> str:
    return (
        f"<label><span>{escape(entry.label)}<small>{escape(entry.origin)}</small></span>"
        f'<input id="in-{entry.name}" type="number" min="0" step="any" required '
        f'inputmode="decimal" value="{entry.value:g}"></label>'
    )


def _of_the_machine(results: Sequence[ArmResult]) -> str:
    again = " (what is said above of the machine holds for these waits, too)"
    return again if warnings(results) else ""


def _list(lines: Iterable[str]) -> str:
    return f'<ul class="small">{"".join(f"<li>{escape(line)}</li>" for line in lines)}</ul>'


def _measured(figure: dict[str, Any]) -> str:
    tokens = figure["begun"]["sent"] + figure["begun"]["received"]
    said = f"{figure['arm']}: {tokens:,.0f} tokens paid twice for each orphaned run"
    if figure["stood"] is not None:
        least = "at least " if figure["never"] else ""
        said += f", which stood still for {least}{figure['stood']:.1f} s on average after a kill"
    if figure["never"]:
        was = "was" if figure["never"] == 1 else "were"
        said += f" ({figure['never']} {was} never taken over)"
    if figure["engine"] == "temporal":
        said += (
            f"; {figure['actions']:.1f} billable actions for each run of {figure['steps']:.0f} "
            f"steps, and {figure['heartbeats']:.1f} heartbeats, counted afresh from your numbers "
            f"since here, a test, they came every {figure['gap']:g} s"
        )
    return f"{said}."
